/* routing ANSWERS CASE...: reads cases of a router and checks a file of
 * answers (-: standard input). Exits with 1 if an answer is wrong or missing,
 * and with 2 if a file is malformed. cc -std=c99 -o routing routing.c -lm */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The matrices of a case. A float holds all values exactly, even ids. */
enum { IDS = 5, WEIGHTS, IDENTITY_WEIGHTS, BLOCKS };
static const char* const kBlocks[] = {"logits",     "correction_bias",
                                      "bias_index", "expert_scale",
                                      "token_mask", "ids",
                                      "weights",    "identity_weights"};
enum { NAME, UNSUPPORTED, TEXTS = 4 };
static const char* const kTexts[] = {"case", "unsupported", "about",
                                     "families"};
enum { TOLERANCE = 3, NUMBERS };
static const char* const kNumbers[] = {"tokens", "num_experts", "top_k",
                                       "tolerance"};

typedef struct {
  size_t rows, cols; /* 0: the case does not have the block */
  float* values;
} Block;

typedef struct Case {
  struct Case* next;
  const char* texts[TEXTS]; /* NULL: the case does not have the line */
  float numbers[NUMBERS];
  size_t num_options;
  char* options[32]; /* name, a space, and value */
  Block blocks[BLOCKS];
} Case;

static void Fail(const char* file, const char* wrong) {
  fprintf(stderr, "routing: %s: %s\n", file, wrong);
  exit(2);
}

static void* Grow(void* memory, size_t bytes) {
  memory = realloc(memory, bytes != 0 ? bytes : 1);
  if (memory == NULL) Fail("memory", "is exhausted");
  return memory;
}

/* Returns the content of the file, with a terminating 0. */
static char* ReadAll(const char* name) {
  FILE* const file = strcmp(name, "-") == 0 ? stdin : fopen(name, "rb");
  char* text = NULL;
  size_t size = 0, read = 0;
  if (file == NULL) Fail(name, "cannot be opened");
  do {
    size += read;
    text = Grow(text, size + 65537);
    read = fread(text + size, 1, 65536, file);
  } while (read != 0);
  text[size] = '\0';
  if (file != stdin) fclose(file);
  return text;
}

/* Removes the next line from a text, and returns it without the blanks around
 * it. Returns NULL at the end of the text. */
static char* NextLine(char** text) {
  char *line = *text, *end;
  if (*line == '\0') return NULL;
  end = line + strcspn(line, "\n");
  *text = *end == '\0' ? end : end + 1;
  do {
    *end = '\0';
  } while (end > line && strchr(" \t\r", *--end) != NULL);
  return line + strspn(line, " \t");
}

/* Removes the first word from a line, and returns it. */
static char* NextWord(char** line) {
  char* const word = *line;
  char* const end = word + strcspn(word, " \t");
  *line = end + strspn(end, " \t");
  *end = '\0';
  return word;
}

/* Reads a number by strtof(), which rounds once and reads nan, inf and -inf. */
static float Number(const char* file, const char* word) {
  char* end;
  const float value = strtof(word, &end);
  if (end == word || *end != '\0') Fail(file, "a value is not a number");
  return value;
}

/* Returns the index of the key in a list, or `count` if the list lacks it. */
static int Find(const char* key, const char* const* keys, int count) {
  int i = 0;
  while (i < count && strcmp(key, keys[i]) != 0) ++i;
  return i;
}

static Block ReadBlock(const char* file, char* shape, char** text) {
  Block b = {(size_t)Number(file, NextWord(&shape)), 0, NULL};
  b.cols = (size_t)Number(file, NextWord(&shape));
  if (b.rows > 100000 || b.cols > 100000) Fail(file, "a block is too large");
  b.values = Grow(NULL, b.rows * b.cols * sizeof(float));
  for (size_t r = 0; r < b.rows; ++r) {
    char* line = NextLine(text);
    if (line == NULL) Fail(file, "ends in a block");
    for (size_t c = 0; c < b.cols; ++c) {
      b.values[r * b.cols + c] = Number(file, NextWord(&line));
    }
    if (*line != '\0') Fail(file, "a row has too many values");
  }
  return b;
}

/* Appends the cases or answers of a text to a list, and returns its new end. */
static Case** ReadCases(const char* file, char* text, Case** end) {
  Case* c = NULL;
  for (char* line; (line = NextLine(&text)) != NULL;) {
    if (*line == '\0') continue;
    if (c == NULL) {
      if (strcmp(line, "switchyard-router 1") != 0) Fail(file, "has no header");
      c = *end = memset(Grow(NULL, sizeof(Case)), 0, sizeof(Case));
      end = &c->next;
      continue;
    }
    const char* const key = NextWord(&line);
    const int block = Find(key, kBlocks, BLOCKS);
    const int text_of = Find(key, kTexts, TEXTS);
    const int number = Find(key, kNumbers, NUMBERS);
    if (block < BLOCKS) {
      c->blocks[block] = ReadBlock(file, line, &text);
    } else if (number < NUMBERS) {
      c->numbers[number] = Number(file, line);
    } else if (text_of < TEXTS) {
      c->texts[text_of] = line;
    } else if (strcmp(key, "option") == 0 && c->num_options < 32) {
      c->options[c->num_options++] = line;
    } else if (strcmp(key, "end") == 0 && c->texts[NAME] != NULL) {
      c = NULL;
    } else {
      Fail(file, "has an unknown key, or a case without a name");
    }
  }
  if (c != NULL) Fail(file, "ends within a case");
  return end;
}

static int IsRight(float got, float exact, float tolerance) {
  const double bound = tolerance * fabs((double)exact) + ldexp(1.0, -126);
  if (!isfinite(exact)) return isnan(exact) ? isnan(got) : got == exact;
  return fabs((double)got - exact) <= bound;
}

/* Returns 1 if the answer is wrong, or 0. Prints the first difference. */
static int IsWrong(const Case* c, const Case* answer) {
  for (int b = IDS; b < BLOCKS; ++b) {
    const Block expected = c->blocks[b], got = answer->blocks[b];
    const float tolerance = b == IDS ? 0.0f : c->numbers[TOLERANCE];
    if (b == IDENTITY_WEIGHTS && got.rows == 0) continue;
    if (got.rows != expected.rows || got.cols != expected.cols) {
      printf("%s: wrong: %s: has another shape\n", c->texts[NAME], kBlocks[b]);
      return 1;
    }
    for (size_t i = 0; i < got.rows * got.cols; ++i) {
      if (IsRight(got.values[i], expected.values[i], tolerance)) continue;
      printf("%s: wrong: row %d of %s, column %d: %.9g, expected %.9g\n",
             c->texts[NAME], (int)(i / got.cols), kBlocks[b],
             (int)(i % got.cols), (double)got.values[i],
             (double)expected.values[i]);
      return 1;
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  Case *cases = NULL, *answers = NULL, **last = &cases;
  enum { RIGHT, WRONG, NOT_SUPPORTED, MISSING, RESULTS };
  int counts[RESULTS] = {0};
  if (argc < 3) Fail("usage", "routing ANSWERS CASE...");
  ReadCases(argv[1], ReadAll(argv[1]), &answers);
  for (int i = 2; i < argc; ++i) {
    last = ReadCases(argv[i], ReadAll(argv[i]), last);
  }
  for (const Case* c = cases; c != NULL; c = c->next) {
    const Case* a = answers;
    while (a && strcmp(a->texts[NAME], c->texts[NAME]) != 0) a = a->next;
    const int result = a == NULL                       ? MISSING
                       : a->texts[UNSUPPORTED] != NULL ? NOT_SUPPORTED
                                                       : IsWrong(c, a);
    if (result == MISSING) printf("%s: missing\n", c->texts[NAME]);
    if (result == NOT_SUPPORTED) printf("%s: unsupported\n", c->texts[NAME]);
    ++counts[result];
  }
  printf("%d right, %d wrong, %d unsupported, %d missing\n", counts[RIGHT],
         counts[WRONG], counts[NOT_SUPPORTED], counts[MISSING]);
  return counts[WRONG] + counts[MISSING] > 0;
}
