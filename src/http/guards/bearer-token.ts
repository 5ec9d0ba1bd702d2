/**
 * The token of an `Authorization` header whose scheme is Bearer, in whatever case it is written (RFC 9110 §11.1); null where there is none.
 * A token may hold what RFC 6750 does not let it, such as a space: what it is compared with says whether it is right.
 */
export function bearerToken(authorization: string | undefined): string | null {
  return /^bearer +(\S|\S.*\S) *$/i.exec(authorization ?? "")?.[1] ?? null;
}
