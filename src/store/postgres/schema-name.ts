export const SCHEMA = "memprefix";
