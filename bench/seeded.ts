export { seeded } from "../src/eval/measures/bootstrap.js";
