# SPDX-License-Identifier: Apache-2.0
# Sets public_headers: what programs include, with everything that these headers include in turn. Paths from the root.
set(pending
    experiment/command_line.h
    experiment/experiment.h
    frontend/data/loader.h
    frontend/data/random.h
    frontend/io/file.h
    frontend/io/idx.h
    frontend/io/jsonl.h
    frontend/io/npy.h
    frontend/io/npz.h
    frontend/io/plot.h
    frontend/io/png.h
    frontend/io/safetensors.h
    frontend/llm/checkpoint.h
    frontend/llm/generator.h
    frontend/llm/language_config.h
    frontend/llm/language_model.h
    frontend/llm/stored_weights.h
    frontend/lockstep.h
    frontend/ops/losses.h
    frontend/text/chat_template.h
    frontend/text/tokenizer.h
    frontend/text/tokenizer_config.h
    frontend/text/train_bpe.h
    runtime/program_trainer.h)
set(public_headers "")
while(pending)
  list(POP_FRONT pending header)
  if(header IN_LIST public_headers)
    continue()
  endif()
  list(APPEND public_headers ${header})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
  file(STRINGS ${PROJECT_SOURCE_DIR}/${header} includes REGEX "^ *# *include \"")
  list(TRANSFORM includes REPLACE "^[^\"]*\"([^\"]*)\".*$" "\\1")
  list(APPEND pending ${includes})
endwhile()
