// T: elements; K0, K1, K2: taps along each of the last three axes, 0 for the identity along an axis,
// -1 where `axes.taps` has the number; W0, W1, W2: whether the taps have weights; SOME0, SOME1, SOME2:
// whether some taps are missing.
// Linear maps along three axes at once. Tables have the shape (taps, outputs): input indices, -1 for a
// missing tap, and weights.

typedef typename Computed<T>::type C;

struct Axes {
    int64 length[3], count[3], taps[3];
    uint64 count_divider_0, count_divider_1, groups_divider;
};

#define TAPS(d) (K##d == 0 ? 1 : K##d > 0 ? K##d : (int)axes.taps[d])
#define EACH_TAP(d, output)                                                               \
    _Pragma("unroll") for (int t##d = 0; t##d < TAPS(d); ++t##d) {                        \
        const int from_##d =                                                              \
            K##d == 0 ? (int)output : indices_##d[t##d * (int)axes.count[d] + (int)output];  \
        if (SOME##d && from_##d < 0) continue;                                                     \
        const C weight_##d = W##d ? weights_##d[t##d * (int)axes.count[d] + (int)output] : (C)1;

extern "C" __global__ void __launch_bounds__(256) weighted_sums(
    const T* __restrict__ x, const int* __restrict__ indices_0, const C* __restrict__ weights_0,
    const int* __restrict__ indices_1, const C* __restrict__ weights_1,
    const int* __restrict__ indices_2, const C* __restrict__ weights_2, T* __restrict__ out,
    const Axes axes, double divisor, int64 groups_of_four, int64 n) {
    const uint32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    // A thread computes four adjacent outputs.
    const uint32 row = quotient(i, axes.groups_divider), output_2 = (i - row * (uint32)groups_of_four) * 4;
    const uint32 above = quotient(row, axes.count_divider_1), output_1 = row - above * (uint32)axes.count[1];
    const uint32 lead = quotient(above, axes.count_divider_0);
    const uint32 output_0 = above - lead * (uint32)axes.count[0];
    const int valid = axes.count[2] - output_2 < 4 ? (int)(axes.count[2] - output_2) : 4;
#if K2 > 0
    int from[K2][4];
    C weight[K2][4];
#pragma unroll
    for (int t = 0; t < K2; ++t) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int offset = t * (int)axes.count[2] + (int)output_2 + j;
            from[t][j] = j < valid ? indices_2[offset] : SOME2 ? -1 : 0;
            weight[t][j] = W2 && j < valid ? weights_2[offset] : (C)1;
        }
    }
#endif
    C totals[4] = {(C)0, (C)0, (C)0, (C)0};
    const T* volume = x + lead * axes.length[0] * axes.length[1] * axes.length[2];
    EACH_TAP(0, output_0)
        EACH_TAP(1, output_1)
            const T* line = volume + (from_0 * axes.length[1] + from_1) * axes.length[2];
            const C outer = weight_0 * weight_1;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                C sum = (C)0;
#if K2 == 0
                if (j < valid) sum = load(line[output_2 + j]);
#elif K2 > 0
#pragma unroll
                for (int t = 0; t < K2; ++t)
                    if (!SOME2 || from[t][j] >= 0)
                        sum += W2 ? weight[t][j] * load(line[from[t][j]]) : load(line[from[t][j]]);
#else
                if (j < valid) {
                    EACH_TAP(2, output_2 + j)
                        sum += W2 ? weight_2 * load(line[from_2]) : load(line[from_2]);
                    }
                }
#endif
                totals[j] += W0 || W1 ? outer * sum : sum;
            }
        }
    }
    T results[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
        results[j] = convert<T>(divisor == 1.0 ? totals[j] : totals[j] / (C)divisor);
    T* target = out + (int64)row * axes.count[2] + output_2;
    if (valid == 4) {
        store_four(target, results, 1);
    } else {
        for (int j = 0; j < valid; ++j) target[j] = results[j];
    }
}
