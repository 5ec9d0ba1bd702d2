"""llama_server.py MODEL NAME PORT CONTEXT SLOTS: llama.cpp's own server, until its standard input ends."""

import sys

import xllamacpp

model, name, port, context, slots = sys.argv[1:6]
params = xllamacpp.CommonParams()
params.model.path = model
params.model_alias = {name} if isinstance(params.model_alias, set) else name
params.hostnames = ["127.0.0.1"]
params.port = int(port)
params.n_ctx = int(context) * int(slots)
params.n_parallel = int(slots)
params.kv_unified = False
params.endpoint_metrics = True
params.use_jinja = True
# Its threads wait for each other in busy loops: beside other tests, two take five times as long as one.
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print(f"listening at {server.listening_address}", flush=True)
sys.stdin.read()
