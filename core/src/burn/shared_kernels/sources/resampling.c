// Linear maps along the last three of four axes at once. Tables have the shape (taps, outputs): input
// indices, -1 for a missing tap, and weights. K0, K1, K2: taps along each axis, 0 for the identity along
// it, -1 where `taps` has the number; W0, W1, W2: whether the taps have weights; SOME0, SOME1, SOME2:
// whether some taps are missing.

typedef struct {
    int64 n, groups_of_four, x_offset, out_offset, divisor, source, target;
    int64 lengths[3], counts[3], taps[3], count_divider_0, count_divider_1, groups_divider;
} Parameters;
#ifndef SOURCE
#define SOURCE ((int)parameters.source)
#define TARGET ((int)parameters.target)
#endif

#define TAPS(d) (K##d == 0 ? 1 : K##d > 0 ? K##d : (int)parameters.taps[d])
#define EACH_TAP(d, output)                                                                \
    UNROLL for (int t##d = 0; t##d < TAPS(d); ++t##d) {                                    \
        const int entry_##d = t##d * (int)parameters.counts[d] + (int)(output);            \
        const int from_##d = K##d == 0 ? (int)(output) : indices_##d[entry_##d];           \
        if (SOME##d && from_##d < 0) continue;                                             \
        const C weight_##d = W##d ? weights_##d[entry_##d] : (C)1;
#define ADD_TAP(sum, weight, index)                        \
    const C value = READ(x, line + (index), SOURCE);       \
    sum = W2 ? MULTIPLY_ADD(weight, value, sum) : sum + value;

// An item computes four adjacent outputs.
KERNEL(GROUP_ITEMS) void weighted_sums(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const int* restrict indices_0,
    GLOBAL const C* restrict weights_0, GLOBAL const int* restrict indices_1,
    GLOBAL const C* restrict weights_1, GLOBAL const int* restrict indices_2,
    GLOBAL const C* restrict weights_2, GLOBAL void* restrict out) {
    const uint i = (uint)ITEM;
    if (i >= (uint)parameters.n) return;
    const uint row = quotient_by(i, (uint64)parameters.groups_divider);
    const int output_2 = (int)(i - row * (uint)parameters.groups_of_four) * 4;
    const uint above = quotient_by(row, (uint64)parameters.count_divider_1);
    const int output_1 = (int)(row - above * (uint)parameters.counts[1]);
    const uint lead = quotient_by(above, (uint64)parameters.count_divider_0);
    const int output_0 = (int)(above - lead * (uint)parameters.counts[0]);
    const int left = (int)parameters.counts[2] - output_2, valid = left < 4 ? left : 4;
#if K2 > 0
    int from[K2][4];
    C weight[K2][4];
    UNROLL for (int t = 0; t < K2; ++t) {
        UNROLL for (int j = 0; j < 4; ++j) {
            const int entry = t * (int)parameters.counts[2] + output_2 + j;
            from[t][j] = j < valid ? indices_2[entry] : SOME2 ? -1 : 0;
            weight[t][j] = W2 && j < valid ? weights_2[entry] : (C)1;
        }
    }
#endif
    C totals[4] = {(C)0, (C)0, (C)0, (C)0};
    const int64 plane = parameters.lengths[1] * parameters.lengths[2];
    const int64 volume = parameters.x_offset + (int64)lead * parameters.lengths[0] * plane;
    EACH_TAP(0, output_0)
        EACH_TAP(1, output_1)
            const int64 line = volume + from_0 * plane + from_1 * parameters.lengths[2];
            const C outer = weight_0 * weight_1;
            UNROLL for (int j = 0; j < 4; ++j) {
                C sum = (C)0;
#if K2 == 0
                if (j < valid) sum = READ(x, line + output_2 + j, SOURCE);
#elif K2 > 0
                UNROLL for (int t = 0; t < K2; ++t)
                    if (!SOME2 || from[t][j] >= 0) {
                        ADD_TAP(sum, weight[t][j], from[t][j])
                    }
#else
                if (j < valid) {
                    EACH_TAP(2, output_2 + j)
                        ADD_TAP(sum, weight_2, from_2)
                    }
                }
#endif
                totals[j] = W0 || W1 ? MULTIPLY_ADD(outer, sum, totals[j]) : totals[j] + sum;
            }
        }
    }
    const C divisor = SCALAR((uint64)parameters.divisor);
    const int64 target = parameters.out_offset + (int64)row * parameters.counts[2] + output_2;
    UNROLL for (int j = 0; j < 4; ++j) totals[j] = divisor == (C)1 ? totals[j] : totals[j] / divisor;
    if (parameters.counts[2] % 4 == 0) {
        WRITE_FOUR(out, target, TARGET, totals);
    } else {
        UNROLL for (int j = 0; j < 4; ++j)
            if (j < valid) WRITE(out, target + j, TARGET, totals[j]);
    }
}
