/** The address of a route: a proxy may serve it, as this page, below a path of its own. */
export const address = (path: string): string => new URL(`.${path}`, document.baseURI).href;

/** The address that programs are given: without a slash at its end. */
export const serverAddress = (): string => address("/").replace(/\/$/, "");
