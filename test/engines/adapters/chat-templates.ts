const plain = (role: string) => `{{- '<' ~ ${role} ~ '>' ~ turn.content ~ '\\n' -}}`;
const calls =
  "{%- for call in turn.tool_calls or [] -%}{{- 'call ' ~ call.function.name ~ call.function.arguments ~ '\\n' -}}{%- endfor -%}";
const prompt = "{%- if add_generation_prompt -%}{{- '<assistant>' -}}{%- endif -%}";
/**
 * Templates that do what those of models are documented to do; the texts are ours.
 * Sources: https://qwen.readthedocs.io (Qwen3, "thinking content in history"), https://huggingface.co/zai-org/GLM-4.6 and
 * https://huggingface.co/MiniMaxAI/MiniMax-M2 ("interleaved thinking"), https://huggingface.co/moonshotai/Kimi-K2-Thinking
 */
export const CHAT_TEMPLATES = {
  // From the end: the first user's message there that wraps no tool's result.
  qwen3: `
{%- set seen = namespace(isSought=true, asked=messages|length - 1) -%}
{%- for turn in messages[::-1] -%}
  {%- set index = messages|length - 1 - loop.index0 -%}
  {%- if seen.isSought and turn.role == 'user' and not turn.content.startswith('<tool_response>') -%}
    {%- set seen.isSought = false -%}
    {%- set seen.asked = index -%}
  {%- endif -%}
{%- endfor -%}
{%- for turn in messages -%}
  {%- if turn.role == 'assistant' -%}
    {{- '<assistant>' -}}
    {%- if loop.index0 > seen.asked and turn.reasoning_content is string -%}
      {{- '<think>' ~ turn.reasoning_content ~ '</think>' -}}
    {%- endif -%}
    {{- turn.content ~ '\\n' -}}${calls}
  {%- elif turn.role == 'tool' -%}
    {{- '<user><tool_response>' ~ turn.content ~ '</tool_response>\\n' -}}
  {%- else -%}
    ${plain("turn.role")}
  {%- endif -%}
{%- endfor -%}${prompt}`,
  // Whether it wraps a result is asked by itself.
  glm: `
{%- set found = namespace(last_of_user=-1) -%}
{%- for turn in messages -%}
  {%- if turn.role == 'user' -%}{%- set found.last_of_user = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for turn in messages -%}
  {%- if turn.role == 'assistant' -%}
    {{- '<assistant>' -}}
    {%- if loop.index0 > found.last_of_user and turn.reasoning_content -%}
      {{- '<think>' ~ turn.reasoning_content ~ '</think>' -}}
    {%- else -%}
      {{- '</think>' -}}
    {%- endif -%}
    {{- turn.content ~ '\\n' -}}${calls}
  {%- elif turn.role == 'tool' -%}
    {{- '<observation>' ~ turn.content ~ '\\n' -}}
  {%- else -%}
    ${plain("turn.role")}
  {%- endif -%}
{%- endfor -%}${prompt}`,
  // Instructions in the middle count too; what its comments say does not.
  deepseek: `
{#- {%- if turn.role == 'user' -%} -#}
{%- set asked = namespace(value=-1) -%}
{%- for turn in messages -%}
  {%- if turn.role in ["user", "developer"] -%}{%- set asked.value = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for turn in messages -%}
  {%- set place = loop.index0 -%}
  {%- if turn.role == 'assistant' and place > asked.value -%}
    {{- '<think>' ~ turn.reasoning_content ~ '</think>' -}}
  {%- endif -%}
  ${plain("turn.role")}${calls}
{%- endfor -%}${prompt}`,
  // Where the thoughts are in front is decided in a variable.
  kimi: `
{%- set found = namespace(answer=-1) -%}
{%- for turn in messages -%}
  {%- if turn.role == 'assistant' and not turn.tool_calls -%}{%- set found.answer = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for turn in messages -%}
  {{- '<' ~ turn.role ~ '>' -}}
  {%- if loop.index0 > found.answer and turn.reasoning_content is string -%}
    {{- '<think>' ~ turn.reasoning_content ~ '</think>' -}}
  {%- endif -%}
  {{- turn.content ~ '\\n' -}}${calls}
{%- endfor -%}${prompt}`,
} as const;
