"""dequantize.py FOLDER FILE TO: a GGUF file as a bfloat16 folder of Hugging Face's form, which vLLM loads."""

import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder, file, to = sys.argv[1:4]
tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.bfloat16)
# The weights are plain now, whatever the configuration of the file says.
model.hf_quantizer = None
model.is_quantized = False
if hasattr(model.config, "quantization_config"):
    del model.config.quantization_config
model.save_pretrained(to)
tokenizer.save_pretrained(to)
