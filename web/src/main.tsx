import { render } from "preact";
import { App } from "./app";
import { loadHistory, loadVoices } from "./state";
import "./style.css";

render(<App />, document.body);
void loadVoices();
void loadHistory();
