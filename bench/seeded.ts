export { seeded } from "../src/eval/seeded.js";
