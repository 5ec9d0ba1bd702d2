import { readFileSync } from "node:fs";
import { z } from "zod";

/*
 * Prints a CycloneDX document of the packages that memstem runs with, as they are locked: from the lock file alone, so the same one every
 * time. `npm sbom --omit=dev` (npm 11.19) leaves out packages that development needs too, zod among them.
 * Source of the form: https://cyclonedx.org/docs/1.5/json/
 */

const lock = z.object({
  packages: z.record(
    z.string(),
    z.object({
      name: z.string().optional(),
      version: z.string(),
      license: z.string().optional(),
      integrity: z.string().optional(),
      dev: z.boolean().optional(),
      devOptional: z.boolean().optional(),
      optional: z.boolean().optional(),
      peer: z.boolean().optional(),
    }),
  ),
});
type Locked = z.output<typeof lock>["packages"][string];

const INSTALLED_IN = "node_modules/";

const { packages } = lock.parse(JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8")));
const components = new Map<string, object>();
let root: object = {};
for (const [path, locked] of Object.entries(packages)) {
  const name = locked.name ?? path.slice(path.lastIndexOf(INSTALLED_IN) + INSTALLED_IN.length);
  if (path === "") root = componentOf(name, locked);
  else if (locked.dev !== true && locked.devOptional !== true) {
    const component = componentOf(name, locked);
    components.set(component["bom-ref"], component);
  }
}

process.stdout.write(
  `${JSON.stringify({ bomFormat: "CycloneDX", specVersion: "1.5", version: 1, metadata: { component: root }, components: [...components.values()] }, null, 2)}\n`,
);

function componentOf(name: string, { version, license, integrity, optional }: Locked) {
  const purl = `pkg:npm/${name.replace(/^@/, "%40")}@${version}`;
  const [algorithm = "", digest] = integrity?.split("-", 2) ?? [];
  return {
    "bom-ref": purl,
    type: "library",
    name,
    version,
    scope: optional === true ? "optional" : "required",
    purl,
    ...(license === undefined ? {} : { licenses: [licenseOf(license)] }),
    ...(digest === undefined
      ? {}
      : {
          hashes: [{ alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(digest, "base64").toString("hex") }],
        }),
  };
}

/** An expression is named as one: an id has no spaces. */
function licenseOf(license: string): object {
  return /\s/.test(license) ? { expression: license } : { license: { id: license } };
}
