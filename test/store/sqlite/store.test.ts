import { openInMemory, openOwned } from "../../../src/store/sqlite/open.js";
import { temporaryFolders } from "../../temporary-folders.js";
import { describeRandomUse } from "../random-use.suite.js";
import { describeStore } from "../store.suite.js";

describeStore("SQLite in memory", () => ({ database: openInMemory(), beside: null }));

const newDirectory = temporaryFolders();
const openFile = () => {
  const directory = newDirectory();
  // Another store of the same process: other processes do not write.
  const open = () => openOwned(directory).database;
  return { database: open(), beside: async () => open() };
};
describeStore("SQLite in a file", openFile);
describeRandomUse(openFile, [1, 2]);
