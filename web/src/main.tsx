import { render } from "preact";
import { App } from "./app";
import { meet } from "./desk";
import "./style.css";

render(<App />, document.body);
void meet();
