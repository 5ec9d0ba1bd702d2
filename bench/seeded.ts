export { seeded } from "../src/eval/base/seeded.js";
