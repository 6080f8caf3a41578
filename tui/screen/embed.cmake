# cmake -DIN=file -DOUT=file.c -DNAME=symbol -P embed.cmake: a file's bytes as a C array, so that the program is one binary.
file(READ "${IN}" bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUT}" "#include <stddef.h>\n\nextern const unsigned char ${NAME}[];\nextern const size_t ${NAME}_size;\n
const unsigned char ${NAME}[] = {\n${bytes}\n};\nconst size_t ${NAME}_size = ${size};\n")
