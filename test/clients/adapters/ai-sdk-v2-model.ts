/** With the package that implements version 2 of the model's interface: `heavy/packages.json`. */
import "./ai-sdk-chat.js";
