/* `GET /docs`: the HTTP API, as the OpenAPI document describes it. */
import "openapi-explorer/dist/browser/openapi-explorer.min.js";

if (matchMedia("(prefers-color-scheme: dark)").matches) {
  const page = document.querySelector("openapi-explorer");
  page?.setAttribute("bg-color", "#15181c");
  page?.setAttribute("text-color", "#e6e8ea");
}
