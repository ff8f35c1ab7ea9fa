declare module "swagger-ui-dist/swagger-ui-es-bundle.js" {
  export interface ResponseBody {
    content: unknown;
    contentType: string;
    url: string;
  }

  type Component = (body: ResponseBody) => unknown;

  export type Plugin = () => {
    wrapComponents: {
      responseBody: (
        original: Component,
        system: { React: { createElement: (component: Component, body: ResponseBody) => unknown } },
      ) => Component;
    };
  };

  export default function SwaggerUI(options: {
    url: string;
    dom_id: string;
    deepLinking: boolean;
    syntaxHighlight: boolean;
    plugins: Plugin[];
  }): unknown;
}
