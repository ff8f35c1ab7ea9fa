declare module "swagger-ui-dist/swagger-ui-es-bundle.js" {
  export interface ResponseBody {
    content: unknown;
    contentType: string;
    url: string;
  }

  type Component<Props> = (props: Props) => unknown;
  type Wrap<Props> = (
    original: Component<Props>,
    system: { React: { createElement: (component: unknown, props: object | null, ...children: unknown[]) => unknown } },
  ) => Component<Props>;

  export type Plugin = () => {
    wrapComponents: {
      responseBody?: Wrap<ResponseBody>;
      operations?: Wrap<object>;
      InfoContainer?: Wrap<object>;
      DeepLink?: Wrap<{ text: unknown }>;
    };
  };

  export default function SwaggerUI(options: {
    url: string;
    dom_id: string;
    deepLinking: boolean;
    syntaxHighlight: boolean;
    requestInterceptor: (request: { url: string }) => { url: string };
    plugins: Plugin[];
  }): unknown;
}
