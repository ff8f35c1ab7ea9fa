import { render } from "preact";
import { App } from "./app";
import { loadWords } from "./speak/pronunciations";
import { loadHistory, loadVoices } from "./state";
import "./style.css";

loadWords();
render(<App />, document.body);
void loadVoices();
void loadHistory();
