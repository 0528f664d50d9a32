// Rows of the scores of queries and keys. On a CPU an item takes a row, in vectors of 64 bytes; on a
// GPU a group does, a score for each of its items at a time.

typedef struct {
    long rows, n, queries, rank, scale, softcap, has_softcap, has_mask, has_bias, is_causal,
        may_exclude, mask_start, bias_start, mask_step, bias_step, lengths[8], mask_strides[8],
        bias_strides[8];
} Parameters;

#define UNSEEN ((V)(-(C)INFINITY))

#if IS_CPU
#if IS_DOUBLE
#define WIDTH 8
#else
#define WIDTH 16
#endif
#define V JOIN(C, WIDTH)
#define ROW ITEM
#define EACH(k) for (long k = 0; k < n; k += WIDTH)
#define SHARED
#define BEYOND(row) if (row >= parameters.rows) return;
#define ACROSS(function, v) function(v)
#define READ_ROW(p, base, k) read_row(p, (base) + (k), n - (k))
#define WRITE_ROW(p, base, k, v) write_row(p, (base) + (k), n - (k), v)
#define LIMITED(v, k) without_end(v, n - k)
#define PUT(target, expression)                                                  \
    {                                                                            \
        C values[WIDTH];                                                         \
        for (long j = 0; j < WIDTH; ++j) {                                       \
            const long key = first + j;                                          \
            values[j] = key < n ? (C)(expression) : (C)0;                        \
        }                                                                        \
        target = JOIN(vload, WIDTH)(0, values);                                  \
    }

inline V read_row(GLOBAL const C* p, long k, long left) {
    if (left >= WIDTH) return JOIN(vload, WIDTH)(0, p + k);
    C values[WIDTH];
    for (int j = 0; j < WIDTH; ++j) values[j] = j < left ? p[k + j] : (C)0;
    return JOIN(vload, WIDTH)(0, values);
}
inline void write_row(GLOBAL C* p, long k, long left, V x) {
    if (left >= WIDTH) {
        JOIN(vstore, WIDTH)(x, 0, p + k);
        return;
    }
    C values[WIDTH];
    JOIN(vstore, WIDTH)(x, 0, values);
    for (int j = 0; j < WIDTH && j < left; ++j) p[k + j] = values[j];
}
inline V without_end(V x, long left) {
    if (left >= WIDTH) return x;
    C values[WIDTH];
    JOIN(vstore, WIDTH)(x, 0, values);
    for (int j = 0; j < WIDTH; ++j)
        if (j >= left) values[j] = -(C)INFINITY;
    return JOIN(vload, WIDTH)(0, values);
}
inline C total(V x) {
    C values[WIDTH];
    JOIN(vstore, WIDTH)(x, 0, values);
    C sum = values[0];
    for (int j = 1; j < WIDTH; ++j) sum += values[j];
    return sum;
}
inline C peak(V x) {
    C values[WIDTH];
    JOIN(vstore, WIDTH)(x, 0, values);
    C best = values[0];
    for (int j = 1; j < WIDTH; ++j) best = fmax(best, values[j]);
    return best;
}
#else
#define V C
#define ROW GROUP
#define EACH(k) for (long k = LANE; k < n; k += GROUP_SIZE)
#define SHARED LOCAL C shared[GROUP_SIZE];
#define BEYOND(row)  // there are as many groups as rows
#define ACROSS(function, v) function(v, shared)
#define READ_ROW(p, base, k) ((p)[(base) + (k)])
#define WRITE_ROW(p, base, k, v) (p)[(base) + (k)] = v
#define LIMITED(v, k) (v)
#define PUT(target, expression)                                                  \
    {                                                                            \
        const long key = first;                                                  \
        target = (C)(expression);                                                \
    }
#define ACROSS_ITEMS(name, join)                                                 \
    inline C name(C own, LOCAL C* shared) {                                      \
        shared[LANE] = own;                                                      \
        for (int step = GROUP_SIZE / 2; step > 0; step /= 2) {                   \
            BARRIER;                                                             \
            if (LANE < step) {                                                   \
                const C x = shared[LANE], y = shared[LANE + step];               \
                shared[LANE] = join;                                             \
            }                                                                    \
        }                                                                        \
        BARRIER;                                                                 \
        const C all = shared[0];                                                 \
        BARRIER;                                                                 \
        return all;                                                              \
    }
ACROSS_ITEMS(total, x + y)
ACROSS_ITEMS(peak, fmax(x, y))
#endif

// The hyperbolic tangent: of drivers' own some do not reach 1.
inline V bent(V x) {
    const V decay = expm1((C)-2 * fabs(x));
    return copysign(-decay / ((C)2 + decay), x);
}

#ifdef HAS_attention_weights
// What softmax makes of the scores. A row without keys becomes 0 where there may be one.
KERNEL(GROUP_SIZE)
void attention_weights(
    const Parameters parameters, GLOBAL const C* scores, GLOBAL const uchar* mask,
    GLOBAL const C* bias, GLOBAL C* out) {
    SHARED
    const long n = parameters.n, row = ROW;
    BEYOND(row)
    long mask_row = parameters.mask_start, bias_row = parameters.bias_start, rest = row;
    for (long axis = parameters.rank - 1; axis >= 0; --axis) {
        const long at = rest % parameters.lengths[axis];
        rest /= parameters.lengths[axis];
        mask_row += at * parameters.mask_strides[axis];
        bias_row += at * parameters.bias_strides[axis];
    }
    const C scale = OF_NUMBER((ulong)parameters.scale);
    const C softcap = OF_NUMBER((ulong)parameters.softcap);
    // The last query stands at the last key.
    const long last = parameters.is_causal ? row % parameters.queries + n - parameters.queries : n;
    const int bends = (int)parameters.has_softcap, hides = (int)parameters.has_mask;
    const long mask_step = parameters.mask_step, bias_step = parameters.bias_step;
    const long base = row * n;
    V best = UNSEEN, seen = (V)((C)0);
    EACH(first) {
        V score = READ_ROW(scores, base, first) * scale;
        if (bends) score = bent(score / softcap) * softcap;
        if (hides || last < n) {
            V hidden;
            PUT(hidden, key > last || (hides && mask[mask_row + key * mask_step]) ? (C)1 : (C)0)
            score = hidden != (C)0 ? UNSEEN : score;
        }
        if (parameters.has_bias) {
            V added;
            PUT(added, bias[bias_row + key * bias_step])
            score += added;
        }
        score = LIMITED(score, first);
        best = fmax(best, score);
        seen = score == UNSEEN ? seen : (V)((C)1);
        WRITE_ROW(out, base, first, score);
    }
    const C highest = ACROSS(peak, best), keys = ACROSS(total, seen);
    const int excluded = parameters.may_exclude && keys == (C)0;
    V sum = (V)((C)0);
    EACH(first) {
        WRITE_ROW(out, base, first, exp(READ_ROW(out, base, first) - highest));
        sum += READ_ROW(out, base, first);  // nothing beyond the end of the row
    }
    const C all = ACROSS(total, sum);
    EACH(first) {
        const V weight = READ_ROW(out, base, first) / all;
        WRITE_ROW(out, base, first, excluded ? (V)((C)0) : weight);
    }
}
#endif

#ifdef HAS_attention_slope
// The gradient by the products of queries and keys: that of softmax, of the cap and of the scale.
KERNEL(GROUP_SIZE)
void attention_slope(
    const Parameters parameters, GLOBAL const C* weights, GLOBAL const C* g,
    GLOBAL const C* scores, GLOBAL C* out) {
    SHARED
    const long n = parameters.n, row = ROW;
    BEYOND(row)
    const long base = row * n;
    const C scale = OF_NUMBER((ulong)parameters.scale);
    const C softcap = OF_NUMBER((ulong)parameters.softcap);
    V sum = (V)((C)0);
    EACH(first) sum += READ_ROW(weights, base, first) * READ_ROW(g, base, first);
    const C level = ACROSS(total, sum);
    EACH(first) {
        V slope = READ_ROW(weights, base, first) * (READ_ROW(g, base, first) - level);
        if (parameters.has_softcap) {
            const V turned = bent(READ_ROW(scores, base, first) * scale / softcap);
            slope *= (C)1 - turned * turned;
        }
        WRITE_ROW(out, base, first, slope * scale);
    }
}
#endif
