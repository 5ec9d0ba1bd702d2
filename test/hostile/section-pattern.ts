/** What memprefix puts in front of a message's text: blocks between tags, lines after them, and the empty line before the text. */
export const SECTION =
  /<memories>\n(?:.*?\n)?<\/memories>(?:\n(?:Most|No longer|Current|Also) [^\n]*(?:\n {2}[^\n]*)*)*(?:\n\n)?/s;
