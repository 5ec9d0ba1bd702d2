/** One invalid field, by the name that the caller used. Never quotes memory text. */
export interface FieldIssue {
  readonly field: string;
  readonly message: string;
}
