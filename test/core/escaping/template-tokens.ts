/**
 * Special tokens of public models, by the name under which their tokenizers are published: what opens and closes turns, thoughts, tools
 * and media, and some of those that are reserved. Written from their tokenizer files, chat templates and llama.cpp's vocabulary code; not
 * every token of each, but every shape.
 */
export const TEMPLATE_TOKENS: Readonly<Record<string, readonly string[]>> = {
  "meta-llama/Llama-2": ["<s>", "</s>", "<unk>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"],
  "meta-llama/Llama-3": [
    ...["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>"],
    ...["<|python_tag|>", "<|finetune_right_pad_id|>", "<|reserved_special_token_247|>", "<|image|>"],
  ],
  "meta-llama/Llama-4": [
    ...["<|header_start|>", "<|header_end|>", "<|eot|>", "<|image_start|>", "<|patch|>", "<|tile_x_separator|>"],
  ],
  "codellama/CodeLlama": ["▁<PRE>", "<PRE>", "<SUF>", "<MID>", "<EOT>", "<FILL_ME>"],
  "Qwen/Qwen2.5": [
    ...["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|box_end|>", "<|vision_start|>"],
    ...["<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|repo_name|>", "<|file_sep|>"],
  ],
  "Qwen/Qwen3": ["<think>", "</think>", "<tool_response>", "</tool_response>", "/think", "/no_think", "<function=run>"],
  "Qwen/Qwen-VL": ["<img>", "</img>", "<ref>", "</ref>", "<box>", "</box>", "<quad>", "<imgpad>"],
  "mistralai/Mistral-v3": [
    ...["[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"],
    ...["[/TOOL_RESULTS]", "[IMG]", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[control_8]"],
  ],
  "mistralai/Mistral-v7": ["[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]", "<pad>"],
  "mistralai/Mistral-v13": [
    ...["[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]", "[AUDIO]", "[BEGIN_AUDIO]", "[TRANSCRIBE]", "<SPECIAL_20>"],
    ...["[MODEL_SETTINGS]", "[/MODEL_SETTINGS]"],
  ],
  "google/gemma-2": [
    ...["<bos>", "<eos>", "<pad>", "<unk>", "<mask>", "<2mass>", "[@BOS@]", "[multimodal]", "<unused12>", "<unused98>"],
    ...["<start_of_turn>", "<end_of_turn>"],
  ],
  "google/gemma-3": ["<start_of_image>", "<end_of_image>", "<image_soft_token>", "[toxicity=0]"],
  "google/gemma-3n": ["<audio_soft_token>", "<start_of_audio>", "<end_of_audio>"],
  "google/gemma-4": [
    ...["<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>"],
    ...["<|tool_response>", "<tool_response|>", '<|"|>', "<|think|>", "<|image|>", "<|audio>", "<audio|>"],
  ],
  "google/paligemma": ["<image>", "<loc0012>", "<seg003>"],
  "google/codegemma": ["<|fim_prefix|>", "<|fim_suffix|>", "<|file_separator|>"],
  "deepseek-ai/DeepSeek-V3": [
    ...["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", "<｜User｜>", "<｜Assistant｜>", "<|EOT|>"],
    ...["<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>", "<｜fim▁hole｜>", "<｜place▁holder▁no▁7｜>"],
  ],
  "deepseek-ai/DeepSeek-R1": ["<think>", "</think>"],
  "deepseek-ai/DeepSeek-V3.2": ["<｜DSML｜function_calls>", "</｜DSML｜invoke>", "<｜DSML｜"],
  "moonshotai/Kimi-K2": [
    ...["[BOS]", "[EOS]", "[EOT]", "[UNK]", "[PAD]", "<|im_user|>", "<|im_middle|>", "<|im_system|>"],
    ...["<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>", "<|media_content|>"],
  ],
  "zai-org/chatglm3": ["[gMASK]", "[sMASK]", "[MASK]", "<sop>", "<eop>", "<ENC>", "<dBLOCK>", "<|observation|>"],
  "zai-org/GLM-4.5": [
    ...["<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "/nothink", "<|begin_of_image|>", "<|code_prefix|>"],
    ...["<|system|>", "<|user|>", "<|assistant|>"],
  ],
  "MiniMaxAI/MiniMax-M1": [
    ...["<beginning_of_sentence>", "<end_of_sentence>", "<fim_prefix>", "<commit_before>", "<reponame>"],
  ],
  "MiniMaxAI/MiniMax-M2": [
    ...["]~!b[", "]~b]", "[e~[", "]!p~[", "]!d~[", "]<]speech[>[", "]<]image[>[", "]<]start of image[>["],
    ...["]<]vision_pad[>[", "<minimax:tool_call>", "</minimax:tool_call>"],
  ],
  "LGAI-EXAONE/EXAONE-3.5": ["[BOS]", "[|system|]", "[|user|]", "[|assistant|]", "[|endofturn|]", "[PAD]", "[UNK]"],
  "LGAI-EXAONE/EXAONE-4.0": ["[|tool|]", "<tool>", "</tool>", "<tool_call>", "<tool_result>"],
  "ByteDance-Seed/Seed-OSS": [
    ...["<seed:bos>", "<seed:eos>", "<seed:pad>", "<seed:think>", "</seed:think>", "<seed:cot_budget_reflect>"],
    ...["<seed:tool_call>", "</seed:tool_call>", "<[PLHD39_never_used]>"],
  ],
  "ByteDance-Seed/Seed-Coder": ["<[begin▁of▁sentence]>", "<[end▁of▁sentence]>", "<[PAD▁TOKEN]>", "<[fim-prefix]>"],
  "nvidia/Nemotron-Nano-v2": [
    ...["<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_999>", "<TOOLCALL>", "</TOOLCALL>", "<AVAILABLE_TOOLS>"],
  ],
  "nvidia/Nemotron-4": ["<extra_id_0>", "<extra_id_1>"],
  "google/t5": ["<extra_id_99>", "</s>", "<pad>", "<unk>"],
  "microsoft/Phi-3": ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|placeholder1|>", "<|image_1|>"],
  "microsoft/phi-4": ["<|im_sep|>", "<|im_start|>", "<|dummy_85|>", "<|tool|>", "<|/tool|>", "<|endofprompt|>"],
  "CohereLabs/c4ai-command-r": [
    ...["<BOS_TOKEN>", "<PAD>", "<UNK>", "<CLS>", "<SEP>", "<MASK_TOKEN>", "<EOS_TOKEN>", "<EOP_TOKEN>"],
    ...["<|START_OF_TURN_TOKEN|>", "<|SYSTEM_TOKEN|>", "<|CHATBOT_TOKEN|>", "<|BEGINNING_OF_PREFIX_FIM_TOKEN|>"],
  ],
  "CohereLabs/c4ai-command-a": ["<|START_THINKING|>", "<|START_ACTION|>", "<|START_RESPONSE|>", "<|END_TOOL_RESULT|>"],
  "openai/gpt-oss": ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>"],
  "openai/o200k": ["<|endoftext|>", "<|endofprompt|>", "<|fim_middle|>"],
  "ibm-granite/granite-3": ["<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|tool_call|>", "<tool_call>"],
  "ibm-granite/granite-code": [
    ...["<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<filename>", "<gh_stars>", "<issue_start>"],
    ...["<jupyter_code>", "<empty_output>", "<commit_msg>", "<reponame>"],
  ],
  "bigcode/santacoder": ["<fim-prefix>", "<fim-middle>", "<fim-pad>"],
  "internlm/internlm2": [
    ...["[UNUSED_TOKEN_145]", "<|im_start|>", "<|action_start|>", "<|interpreter|>", "<|plugin|>", "<eoh>", "<eoa>"],
    ...["<TOKENS_UNUSED_0>"],
  ],
  "OpenGVLab/InternVL": ["<img>", "<IMG_CONTEXT>", "</img>", "<quad>", "<ref>", "<box>"],
  "tencent/Hunyuan": [
    ...["<|startoftext|>", "<|extra_0|>", "<|extra_4|>", "<｜hy_begin▁of▁sentence｜>", "<｜hy_User｜>", "<|eos|>"],
    ...["<answer>", "</answer>", "<tool_calls>"],
  ],
  "baidu/ERNIE-4.5": [
    ...["<|begin_of_sentence|>", "<|end_of_sentence|>", "<mask:1>", "<mask:7>", "<cls>", "<sep>", "<|LOC_0|>"],
    "<response>",
  ],
  "allenai/OLMo-2": ["<|endoftext|>", "<|pad|>", "<|user|>", "<|assistant|>", "<functions>", "<function_calls>"],
  "tiiuae/falcon": [
    ...[">>TITLE<<", ">>ABSTRACT<<", ">>INTRODUCTION<<", ">>SUMMARY<<", ">>COMMENT<<", ">>ANSWER<<", ">>QUESTION<<"],
    ...[">>DOMAIN<<", ">>PREFIX<<", ">>SUFFIX<<", ">>MIDDLE<<", ">>UNUSED_117<<"],
  ],
  "ai21labs/Jamba-1.5": [
    ...["<|bom|>", "<|eom|>", "<|startoftext|>", "<documents>", "<tool_calls>", "<citations>"],
    "<active_output_modes>",
  ],
  "databricks/dbrx": ["<|im_start|>", "<|pad|>", "<|fim_prefix|>"],
  "baichuan-inc/Baichuan2": ["<reserved_106>", "<reserved_107>", "<reserved_189>", "<B_SYS>", "<C_Q>", "<H_A>"],
  "01-ai/Yi": ["<|startoftext|>", "<|im_sep|>", "<fim_prefix>", "<fim_suffix>"],
  "HuggingFaceH4/zephyr": ["<|system|>", "</s>"],
  "lmsys/vicuna": ["<s>", "</s>"],
  "openchat/openchat": ["<|end_of_turn|>", "<|pad_0|>"],
  "HuggingFaceTB/SmolLM3": [
    ...["/think", "/no_think", "/system_override", "<|im_end|>", "<repo_name>", "<code_interpreter>"],
  ],
  "meituan-longcat/LongCat-Flash": ["<longcat_think>", "<longcat_s>", "<longcat_tool_call>", "/think_on", "/think_off"],
  "inclusionAI/Ling": ["<role>", "</role>", "<|role_end|>", "<|arithmetic_start|>", "[gMASK]"],
  "OpenMOSS/moss": ["<eoh>", "<eom>", "<eot>", "<eor>", "<|Human|>"],
  "rednote-hilab/dots.llm1": ["<|userprompt|>", "<|endofuserprompt|>", "<|response|>"],
  "xai-org/grok-2": ["<|separator|>", "<|control12|>", "[PAD]"],
  "LiquidAI/LFM2": ["<|startoftext|>", "<|tool_list_start|>", "<|tool_response_end|>"],
  "NousResearch/Hermes": ["<tools>", "</tools>", "<tool_call>", "<scratch_pad>", "<SCRATCHPAD>"],
  "Salesforce/xLAM": ["<|tool_call_start|>", "<code_to_interpreter>"],
  "microsoft/kosmos-2": ["<grounding>", "<phrase>", "<object>", "<patch_index_0044>", "<image>"],
  "facebook/nllb": ["<mask>", "<unk>", "</s>"],
  "google/madlad400": ["<2en>", "<2translate>"],
  "google-bert/bert": ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "[unused12]"],
  "huggyllama bytes": ["<0x0A>", "<0xFF>"],
};
