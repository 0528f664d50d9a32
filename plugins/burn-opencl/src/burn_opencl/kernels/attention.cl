// Rows of the scores of queries and keys (row_helpers.cl): an item of a CPU computes a row, or a group
// of a GPU, in which each lane has one score at a time.

typedef struct {
    long rows, n, queries, rank, scale, softcap, has_softcap, has_mask, has_bias, is_causal,
        may_exclude_rows, mask_offset, bias_offset, mask_stride, bias_stride, lengths[8], mask_strides[8],
        bias_strides[8];
} Parameters;

#define EXCLUDED ((V)(-(C)INFINITY))

#if IS_CPU
#define ROW ITEM
#define EACH(k) for (long k = 0; k < n; k += VECTOR_WIDTH)
#define RETURN_WITHOUT_ROW(row) if (row >= parameters.rows) return;
#define READ_ROW(p, base, k) load_vector(p, (base) + (k), n - (k), WIDE_TYPE, (C)0)
#define WRITE_ROW(p, base, k, v) store_vector(p, (base) + (k), n - (k), WIDE_TYPE, v)
#define EXCLUDE_PADDING(v, k) exclude_padding(v, n - k)
#define EVALUATE(target, expression)                      \
    {                                                     \
        C values[VECTOR_WIDTH];                           \
        for (long j = 0; j < VECTOR_WIDTH; ++j) {         \
            const long key = first + j;                   \
            values[j] = key < n ? (C)(expression) : (C)0; \
        }                                                 \
        target = CONCAT(vload, VECTOR_WIDTH)(0, values);  \
    }

inline V exclude_padding(V x, long left) {
    if (left >= VECTOR_WIDTH) return x;
    C values[VECTOR_WIDTH];
    CONCAT(vstore, VECTOR_WIDTH)(x, 0, values);
    for (int j = 0; j < VECTOR_WIDTH; ++j)
        if (j >= left) values[j] = -(C)INFINITY;
    return CONCAT(vload, VECTOR_WIDTH)(0, values);
}
#else
#define ROW GROUP
#define EACH(k) for (long k = LANE; k < n; k += GROUP_SIZE)
#define RETURN_WITHOUT_ROW(row)  // there are as many groups as rows
#define READ_ROW(p, base, k) ((p)[(base) + (k)])
#define WRITE_ROW(p, base, k, v) (p)[(base) + (k)] = v
#define EXCLUDE_PADDING(v, k) (v)
#define EVALUATE(target, expression) \
    {                                \
        const long key = first;      \
        target = (C)(expression);    \
    }
#endif

// The tanh of some drivers does not reach 1.
inline V burn_tanh(V x) {
    const V decay = expm1((C)-2 * fabs(x));
    return copysign(-decay / ((C)2 + decay), x);
}

#ifdef HAS_attention_weights
// Softmax of the scores. A row that excludes all keys becomes 0.
KERNEL(GROUP_SIZE)
void attention_weights(
    const Parameters parameters, GLOBAL const C* scores, GLOBAL const uchar* mask,
    GLOBAL const C* bias, GLOBAL C* out) {
    SHARED
    const long n = parameters.n, row = ROW;
    RETURN_WITHOUT_ROW(row)
    long mask_row = parameters.mask_offset, bias_row = parameters.bias_offset, rest = row;
    for (long axis = parameters.rank - 1; axis >= 0; --axis) {
        const long position = rest % parameters.lengths[axis];
        rest /= parameters.lengths[axis];
        mask_row += position * parameters.mask_strides[axis];
        bias_row += position * parameters.bias_strides[axis];
    }
    const C scale = SCALAR((ulong)parameters.scale);
    const C softcap = SCALAR((ulong)parameters.softcap);
    // The last query is aligned with the last key.
    const long last = parameters.is_causal ? row % parameters.queries + n - parameters.queries : n;
    const int has_softcap = (int)parameters.has_softcap, has_mask = (int)parameters.has_mask;
    const long mask_stride = parameters.mask_stride, bias_stride = parameters.bias_stride;
    const long base = row * n;
    V largest = EXCLUDED, included = (V)((C)0);
    EACH(first) {
        V score = READ_ROW(scores, base, first) * scale;
        if (has_softcap) score = burn_tanh(score / softcap) * softcap;
        if (has_mask || last < n) {
            V hidden;
            EVALUATE(hidden, key > last || (has_mask && mask[mask_row + key * mask_stride]) ? (C)1 : (C)0)
            score = hidden != (C)0 ? EXCLUDED : score;
        }
        if (parameters.has_bias) {
            V added;
            EVALUATE(added, bias[bias_row + key * bias_stride])
            score += added;
        }
        score = EXCLUDE_PADDING(score, first);
        largest = fmax(largest, score);
        included = score == EXCLUDED ? included : (V)((C)1);
        WRITE_ROW(out, base, first, score);
    }
    const C row_largest = ACROSS_LANES(row_max, largest);
    const C keys = ACROSS_LANES(row_sum, included);
    const int is_excluded = parameters.may_exclude_rows && keys == (C)0;
    V sum = (V)((C)0);
    EACH(first) {
        WRITE_ROW(out, base, first, exp(READ_ROW(out, base, first) - row_largest));
        sum += READ_ROW(out, base, first);  // 0 beyond the end of the row
    }
    const C all = ACROSS_LANES(row_sum, sum);
    EACH(first) {
        const V weight = READ_ROW(out, base, first) / all;
        WRITE_ROW(out, base, first, is_excluded ? (V)((C)0) : weight);
    }
}
#endif

#ifdef HAS_attention_score_grad
// The gradient by the products of queries and keys, through softmax, cap and scale.
KERNEL(GROUP_SIZE)
void attention_score_grad(
    const Parameters parameters, GLOBAL const C* weights, GLOBAL const C* g,
    GLOBAL const C* scores, GLOBAL C* out) {
    SHARED
    const long n = parameters.n, row = ROW;
    RETURN_WITHOUT_ROW(row)
    const long base = row * n;
    const C scale = SCALAR((ulong)parameters.scale);
    const C softcap = SCALAR((ulong)parameters.softcap);
    V sum = (V)((C)0);
    EACH(first) sum += READ_ROW(weights, base, first) * READ_ROW(g, base, first);
    const C weighted_mean = ACROSS_LANES(row_sum, sum);
    EACH(first) {
        V score_grad = READ_ROW(weights, base, first) * (READ_ROW(g, base, first) - weighted_mean);
        if (parameters.has_softcap) {
            const V capped = burn_tanh(READ_ROW(scores, base, first) * scale / softcap);
            score_grad *= (C)1 - capped * capped;
        }
        WRITE_ROW(out, base, first, score_grad * scale);
    }
}
#endif
