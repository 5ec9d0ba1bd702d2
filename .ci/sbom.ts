import { type LockedPackage, ROOT_PACKAGE, shippedPackages } from "./shipped-packages.js";

/*
 * Prints a CycloneDX document of the packages that memprefix runs with, as they are locked: from the lock file alone, so the same one every
 * time. Optional parts that memprefix loads itself are in it, as `optional`.
 * Source of the form: https://cyclonedx.org/docs/1.5/json/
 */

const root = componentOf(ROOT_PACKAGE.name ?? "", ROOT_PACKAGE, false);
const components = new Map<string, ReturnType<typeof componentOf>>();
for (const { name, locked, isOptional } of shippedPackages().values()) {
  const component = componentOf(name, locked, isOptional);
  const known = components.get(component["bom-ref"]);
  if (known?.scope !== "required") components.set(component["bom-ref"], component);
}

process.stdout.write(
  `${JSON.stringify({ bomFormat: "CycloneDX", specVersion: "1.5", version: 1, metadata: { component: root }, components: [...components.values()] }, null, 2)}\n`,
);

function componentOf(name: string, { version, license, integrity }: LockedPackage, isOptional: boolean) {
  const purl = `pkg:npm/${name.replace(/^@/, "%40")}@${version}`;
  const [algorithm = "", digest] = integrity?.split("-", 2) ?? [];
  return {
    "bom-ref": purl,
    type: "library",
    name,
    version,
    scope: isOptional ? "optional" : "required",
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
