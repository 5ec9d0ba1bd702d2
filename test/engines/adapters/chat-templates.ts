/** A chat template, and whether it keeps an assistant's thoughts only behind the newest user's message. */
interface TriedTemplate {
  readonly template: string;
  readonly keepsThoughts: boolean;
}

const plain = (role: string) => `{{- '<' ~ ${role} ~ '>' ~ turn.content ~ '\\n' -}}`;
const calls =
  "{%- for call in turn.tool_calls or [] -%}{{- 'call ' ~ call.function.name ~ call.function.arguments ~ '\\n' -}}{%- endfor -%}";
const prompt = "{%- if add_generation_prompt -%}{{- '<assistant>' -}}{%- endif -%}";
/** The messages, each after its role, with the thoughts of those behind the question that was found. */
const thinkingBehindAsked = `{%- for turn in messages -%}
  {{- '<' ~ turn.role ~ '>' -}}
  {%- if turn.role == 'assistant' and loop.index0 > seen.asked -%}
    {{- '<think>' ~ turn.reasoning_content ~ '</think>' -}}
  {%- endif -%}
  {{- turn.content ~ '\\n' -}}${calls}
{%- endfor -%}${prompt}`;

/**
 * Templates that do what those of models are documented to do; the texts are ours.
 * Sources: https://qwen.readthedocs.io (Qwen3, "thinking content in history"), https://huggingface.co/zai-org/GLM-4.6 and
 * https://huggingface.co/MiniMaxAI/MiniMax-M2 ("interleaved thinking"), https://huggingface.co/moonshotai/Kimi-K2-Thinking
 */
export const CHAT_TEMPLATES = {
  // From the end: the first user's message there that wraps no tool's result.
  qwen3: {
    template: `
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
    keepsThoughts: true,
  },
  // Whether it wraps a result is asked by itself.
  "qwen3.5": {
    template: `
{%- set seen = namespace(isSought=true, asked=messages|length - 1) -%}
{%- for turn in messages[::-1] -%}
  {%- set index = messages|length - 1 - loop.index0 -%}
  {%- if seen.isSought and turn.role == 'user' -%}
    {%- set said = turn.content|trim -%}
    {%- if not said.startswith('<tool_response>') -%}
      {%- set seen.isSought = false -%}
      {%- set seen.asked = index -%}
    {%- endif -%}
  {%- endif -%}
{%- endfor -%}
${thinkingBehindAsked}`,
    keepsThoughts: true,
  },
  "that asks in its loop": {
    template: `
{%- set seen = namespace(asked=-1) -%}
{%- for turn in messages if turn.role == 'user' or turn.role == 'assistant' or turn.role == 'tool' -%}
  {%- if turn.role != 'assistant' -%}
    {%- if turn.role != 'tool' -%}{%- set seen.asked = loop.index0 -%}{%- endif -%}
  {%- endif -%}
{%- endfor -%}
${thinkingBehindAsked}`,
    keepsThoughts: true,
  },
  // From the beginning: the last user's message.
  glm: {
    template: `
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
    keepsThoughts: true,
  },
  // Instructions in the middle count too; what its comments say does not.
  deepseek: {
    template: `
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
    keepsThoughts: true,
  },
  // Where the thoughts are in front is decided in a variable.
  "with a flag": {
    template: `
{%- set at = namespace(user_place=-1) -%}
{%- for turn in messages -%}
  {%- set at.user_place = loop.index0 if turn.role == 'user' else at.user_place -%}
{%- endfor -%}
{%- for turn in messages -%}
  {%- set isShown = preserve_thinking or at.user_place < loop.index0 -%}
  {{- '<' ~ turn.role ~ '>' -}}
  {%- if isShown and turn.reasoning_content is string -%}{{- '[thoughts]' ~ turn.reasoning_content -}}{%- endif -%}
  {{- turn.content ~ '\\n' -}}${calls}
{%- endfor -%}${prompt}`,
    keepsThoughts: true,
  },
  // By the last answer: a user's message behind a result changes nothing.
  kimi: {
    template: `
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
    keepsThoughts: false,
  },
  "without thoughts of earlier steps": {
    template: `
{%- for turn in messages -%}
  {%- if turn.role == 'user' -%}
    ${plain("'user'")}
  {%- elif turn.role == 'assistant' -%}
    {{- '<assistant>' ~ turn.content.split('</think>')[-1] ~ '\\n' -}}${calls}
  {%- else -%}
    ${plain("turn.role")}
  {%- endif -%}
{%- endfor -%}${prompt}`,
    keepsThoughts: false,
  },
  "that always keeps thoughts, and marks the last question": {
    template: `
{%- set at = namespace(asked=-1) -%}
{%- for turn in messages -%}
  {%- if turn.role == 'user' -%}{%- set at.asked = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for turn in messages -%}
  {%- if turn.reasoning_content is string -%}{{- '<think>' ~ turn.reasoning_content ~ '</think>' -}}{%- endif -%}
  ${plain("turn.role")}${calls}
  {%- if loop.index0 == at.asked -%}{{- '/no_think\\n' -}}{%- endif -%}
{%- endfor -%}${prompt}`,
    keepsThoughts: false,
  },
} satisfies Record<string, TriedTemplate>;
