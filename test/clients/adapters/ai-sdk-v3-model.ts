/** With the package that implements version 3 of the model's interface: `heavy/packages.json`. */
import "./ai-sdk-chat.js";
