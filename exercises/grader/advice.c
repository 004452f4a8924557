/* What the wrong problems have in common, and where to look. */
#include "grading.h"

#include <math.h>
#include <stdio.h>

static bool is_causal(const struct shape *s) { return s->problem.causal; }
static bool has_keys_outside(const struct shape *s) { /* of the window of some row */
    const struct problem *p = &s->problem;
    return p->windowed && (p->left < p->N_kv - 1 || (!p->causal && p->right < p->N_q - 1));
}
static bool has_groups(const struct shape *s) { return s->problem.heads_kv > 0 && s->problem.heads_kv < s->problem.heads; }
static bool has_empty_rows(const struct shape *s) {
    const struct problem *p = &s->problem;
    return (p->causal || (p->windowed && p->right < p->N_q - p->N_kv)) && p->N_q > p->N_kv;
}
static bool has_tails(const struct shape *s) { return s->problem.N_q % 32 != 0 || s->problem.N_kv % 32 != 0; }
static bool has_odd_d(const struct shape *s) { return s->problem.d % 4 != 0; }
static bool has_part_of_32(const struct shape *s) { return s->problem.d % 32 != 0; }
static bool has_over_32_columns(const struct shape *s) { return s->problem.d > 32; }
static bool is_wide(const struct shape *s) { return s->problem.d > 64; }
static bool is_large(const struct shape *s) { return s->input == INPUT_LARGE; }
static bool is_negative(const struct shape *s) { return s->problem.scale < 0.0f; }
static bool has_many_keys(const struct shape *s) { return s->problem.N_kv > 32; }
static bool is_rectangular(const struct shape *s) { return s->problem.N_q != s->problem.N_kv; }
static bool has_many_rows(const struct shape *s) { return s->problem.N_q > 32; }
static bool has_other_d(const struct shape *s) { return s->problem.d != 32; }
static bool has_heads(const struct shape *s) { return s->problem.heads > 1; }
static bool has_heads_and_other_keys(const struct shape *s) { return has_heads(s) && is_rectangular(s); }

static const struct {
    bool (*has)(const struct shape *);
    const char *which, *look, *look_backward; /* look_backward: NULL where it is the same */
    bool of_keys;                             /* a warm-up has none */
} suspects[] = {
    {is_large, "with large scores", "Is the maximum of the row subtracted before exp()?", NULL, false},
    {is_negative, "with a negative scale", "Is the maximum taken before the scale is applied, or p.scale not used?",
     "Is p.scale used, with its sign?", false},
    {has_empty_rows, "where some row attends to no key", "There m is -inf, and exp(-inf - -inf) is NaN.",
     "There L is -inf, and exp(S - L) is infinite.", false},
    {has_keys_outside, "where a window leaves keys out",
     "The window of a row has two ends, and the keys there belong to it. Which tiles hold an end of some row's window?", NULL,
     true},
    {has_groups, "with grouped heads", "Which head of K and V does a head of Q read?",
     "Does each head of K and V sum over all heads of Q in its group?", true},
    {is_causal, "with a causal mask",
     "Key number attended_keys(p, row) is the first that is masked. Where there are tiles: are those on the diagonal "
     "masked?",
     NULL, false},
    {is_wide, "with d above 64", "Does a loop over columns end too early?", NULL, false},
    {has_odd_d, "where d is no multiple of 4", "Look at the last, partial group of columns.", NULL, false},
    {has_part_of_32, "where d is no multiple of 32", "Is a stride d where the tile has more columns, or the reverse?", NULL,
     false},
    {has_heads_and_other_keys, "with several heads, N_q not N_kv",
     "Is a head's offset made of N_q where it is made of N_kv, or the reverse?", NULL, true},
    {has_heads, "with several heads", "Does each head find its own rows?", NULL, false},
    {is_rectangular, "with different numbers of queries and keys", "Is N_q used where N_kv is meant, or the reverse?", NULL,
     true},
    {has_tails, "that no tile divides", "The last tile is partial: which of its rows and keys exist?", NULL, false},
    {has_many_keys, "with more than one tile of keys", "What is carried from one tile of keys to the next: m, l and O?",
     "What is carried from one tile of keys to the next: the sums of dQ, dK and dV?", true},
    {has_over_32_columns, "with d above 32", "Does a loop over d end after 32 columns?", NULL, false},
    {has_many_rows, "with more than one tile of rows", "Does each block find its own rows?", NULL, false},
    {has_other_d, "where d is not 32", "Does a loop over d, or a stride, assume a value?", NULL, false},
};

/* What the tensors that are wrong say. */
static const char *advice_by_tensor(const struct judged *j, bool backward) {
    const bool *right = j->tensor_right;
    if (!backward && right[TENSOR_L])
        return "L is right, so S, m and l are right: look at P, the product with V, or the division by l.";
    if (!backward && right[TENSOR_O]) return "O is right and L is not: L = m + log(l).";
    if (!backward)
        return "O and L are wrong, so S, m or l is wrong first: look at the product Q K^T, the scale and the maximum.";
    bool dQ = right[TENSOR_dQ], dK = right[TENSOR_dK], dV = right[TENSOR_dV];
    if (!dV && dQ && dK) return "dQ and dK are right, so P is right: look at the product P^T dO.";
    if (dV && !dQ && dK) return "dV and dK are right, so P and dS are right: look at the product dS K.";
    if (dV && dQ && !dK) return "dV and dQ are right, so P and dS are right: look at the product dS^T Q.";
    if (dV) return "dV is right, so P is right: look at dP, D and dS.";
    return "dV is wrong with the others, so P is wrong first: look at S, L and the mask.";
}

/* What the pattern of wrong results says. */
void advise(struct grading *grading, const struct shape *shapes, const struct judged *judged, int count) {
    char *text = grading->advice;
    size_t room = sizeof grading->advice;
    int wrong = 0, wrong_causal = 0, finished = 0, first = -1;
    for (int i = 0; i < count; i++)
        if (finished += judged[i].finished, judged[i].finished && !judged[i].right)
            first = first < 0 ? i : first, wrong++, wrong_causal += is_causal(&shapes[i]);
    if (wrong == 0) return;
    for (int i = 0; i < count; i++) {
        for (enum tensor tensor = 0; tensor < TENSOR_COUNT && judged[i].finished; tensor++) {
            if (judged[i].tensor_right[tensor] || !(fabs(judged[i].factor[tensor]) > 0)) continue;
            snprintf(text, room,
                     "%s is %.4g times what it should be, every element of it: look for a factor (scale, l) that is "
                     "left out or applied twice.",
                     tensor_table[tensor].name, judged[i].factor[tensor]);
            return;
        }
    }
    /* The narrowest property that all wrong problems have, and of which they are most. */
    size_t best = 0;
    int best_with = 0;
    for (size_t s = 0; s < sizeof suspects / sizeof *suspects; s++) {
        int with = 0, wrong_with = 0;
        if (suspects[s].of_keys && is_warm_up(grading->task)) continue;
        for (int i = 0; i < count; i++)
            if (judged[i].finished && suspects[s].has(&shapes[i])) with++, wrong_with += !judged[i].right;
        /* Two problems without the property must be right, and half of those with it wrong. */
        if (finished - with < 2 || wrong_with < wrong || 2 * wrong_with < with) continue;
        if (best_with == 0 || (with == wrong && best_with > wrong) || with < best_with - 1) best = s, best_with = with;
    }
    const char *which = suspects[best].which, *look = suspects[best].look;
    if (grading->task->backward && suspects[best].look_backward != NULL) look = suspects[best].look_backward;
    if (best_with == wrong)
        snprintf(text, room, "The problems %s are wrong, and no others. %s ", which, look);
    else if (best_with > 0)
        snprintf(text, room, "All wrong problems are among the %d %s. %s ", best_with, which, look);
    if (is_warm_up(grading->task)) return;
    if (best_with == 0 && wrong_causal == wrong && finished < count) { /* too few to tell the mask from the rest */
        snprintf(text, room,
                 "All wrong results are of problems with a causal mask; %d of %d problems gave no result. Repair what "
                 "stopped them first. Then look at the mask: key number attended_keys(p, row) is the first that is masked.",
                 count - finished, count);
        return;
    }
    const bool *right = judged[first].tensor_right;
    bool none_right = !right[TENSOR_O] && !right[TENSOR_L], dV_wrong = !right[TENSOR_dV] && !right[TENSOR_dQ];
    if (best_with > 0 && (grading->task->backward ? dV_wrong : none_right)) return; /* it would add nothing */
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s", advice_by_tensor(&judged[first], grading->task->backward));
}
