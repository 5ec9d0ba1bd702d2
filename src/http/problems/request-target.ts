/** What a request asks for (RFC 9112 §3.2), cut before its query. The query begins with its question mark, or is empty. */
export function cutTarget(target: string): { readonly path: string; readonly query: string } {
  const at = target.indexOf("?");
  return at < 0 ? { path: target, query: "" } : { path: target.slice(0, at), query: target.slice(at) };
}
