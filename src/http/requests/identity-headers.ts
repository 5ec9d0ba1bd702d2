import { InvalidRequestError } from "../../service/base/errors.js";
import type { IdentityHeaders } from "../../service/chat/chat.js";

/**
 * A request's headers, where those that the operator named stand for memstem's own. Throws {@link InvalidRequestError} where a request has
 * both, and they differ: an identity is never guessed.
 */
export function withIdentity(
  headers: Pick<Headers, "get">,
  { user, conversation }: IdentityHeaders,
): Pick<Headers, "get"> {
  const named = new Map([
    ["x-memstem-user", user],
    ["x-memstem-conversation", conversation],
  ]);
  return {
    get(name) {
      const own = headers.get(name);
      const also = named.get(name) ?? null;
      const given = also === null ? null : headers.get(also);
      if (own !== null && given !== null && own !== given)
        throw new InvalidRequestError([{ field: name, message: `differs from the header ${also}` }]);
      return own ?? given;
    },
  };
}
