/* corruptions FILE NUMBER: print FILE with damage drawn from NUMBER: bytes changed, cut or doubled, lines or words lost,
 * doubled or exchanged. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20 };
static char text[2 * MOST], copy[2 * MOST];
static uint64_t state;

static size_t draw(size_t below) { /* splitmix64 */
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return below == 0 ? 0 : (size_t)((z ^ z >> 31) % below);
}

/* Put `with` in the place of text[begin, end). */
static void splice(size_t begin, size_t end, const char *with, size_t length) {
    size_t rest = strlen(text + end);
    if (begin + length + rest >= sizeof text) return;
    memcpy(copy, text + end, rest + 1);
    memmove(text + begin, with, length);
    memcpy(text + begin + length, copy, rest + 1);
}

static void line_at(size_t at, size_t *begin, size_t *end) {
    while (at > 0 && text[at - 1] != '\n') at--;
    *begin = at;
    *end = at + strcspn(text + at, "\n");
}
static void word_at(size_t at, size_t *begin, size_t *end) {
    while (text[at] != '\0' && !isalnum((unsigned char)text[at])) at++;
    *begin = *end = at;
    while (isalnum((unsigned char)text[*end]) || text[*end] == '_') ++*end;
}

static void damage(size_t from, size_t to) {
    static const char odd[] = "{}()[];,*&<>=+-/\\\"'#%0129.:\n\t \x80\xff~!?|^";
    size_t begin, end, other_begin, other_end;
    char kept[4096];
    size_t at = from + draw(to - from);
    switch (draw(8)) {
    case 0: text[at] = odd[draw(sizeof odd - 1)]; break;
    case 1: text[at] = (char)(1 + draw(255)); break;
    case 2: splice(at, at + 1 + draw(40) % (strlen(text + at) + 1), "", 0); break;
    case 3: splice(at, at, odd + draw(sizeof odd - 2), 1); break;
    case 4:
        line_at(at, &begin, &end);
        splice(begin, end, "", 0);
        break;
    case 5:
        line_at(at, &begin, &end);
        if (end - begin + 1 >= sizeof kept) return;
        memcpy(kept, text + begin, end - begin);
        kept[end - begin] = '\n';
        splice(begin, begin, kept, end - begin + 1);
        break;
    case 6:
        word_at(at, &begin, &end);
        splice(begin, end, "", 0);
        break;
    default: /* a word in the place of another */
        word_at(at, &begin, &end);
        word_at(from + draw(to - from), &other_begin, &other_end);
        if (other_end - other_begin >= sizeof kept) return;
        memcpy(kept, text + other_begin, other_end - other_begin);
        splice(begin, end, kept, other_end - other_begin);
    }
}

int main(int argc, char **argv) {
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) return 2;
    text[fread(text, 1, MOST, file)] = '\0';
    state = strtoull(argv[2], NULL, 10) * 7919;
    size_t times = 1 + draw(3);
    /* Most of it in the hole, which alone is taken. */
    for (size_t i = 0; i < times; i++) {
        char *begin = strstr(text, "// >>> Hole 1"), *end = strstr(text, "// <<< End of hole 1");
        size_t length = strlen(text);
        if (length == 0) break;
        if (draw(10) == 0 || begin == NULL || end == NULL || end <= begin)
            damage(0, length);
        else
            damage((size_t)(begin - text) + strcspn(begin, "\n"), (size_t)(end - text));
    }
    return fputs(text, stdout) < 0;
}
