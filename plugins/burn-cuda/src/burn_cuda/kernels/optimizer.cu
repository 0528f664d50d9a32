// One step of an optimizer for a list of parameters.
//
// T: elements. STEP: the op. INPUTS, OUTPUTS: arrays of each parameter. NUMBERS: of the step.
// TENSORS: parameters of one launch at most; their arrays are in the table that the kernel gets by
// value. A block computes THREADS * EACH elements of one parameter. A result may be one of the operands.
//
// A step takes the elements x of the operands in the order of the op, without those of empty lists,
// and gives the elements r of the results. VELOCITY and CENTERED: whether RMSprop has these states.

typedef typename Computed<T>::type C;

__device__ __forceinline__ void sgd_step(const C* x, C* r, const C* s) {
    const C g = s[3] != 0 ? x[1] + x[0] * s[3] : x[1];
    C v = g;
#if INPUTS > 2
    if (s[1] != 0) v = x[2] * s[1] + g * s[2];
#endif
    r[0] = x[0] - (s[4] != 0 ? g + v * s[1] : v) * s[0];
#if INPUTS > 2
    r[1] = v;
#endif
}

__device__ __forceinline__ void adam_step(const C* x, C* r, const C* s) {
    const C g = s[1] != 0 ? x[1] + x[0] * s[1] : x[1];
    const C m = x[2] * s[2] + g * s[3];
    const C v = x[3] * s[4] + g * g * s[5];
    r[1] = m;
    r[2] = v;
#if INPUTS > 4
    const C largest = x[4] > v || x[4] != x[4] ? x[4] : v;
    r[3] = largest;
#else
    const C largest = v;
#endif
    r[0] = x[0] * s[0] - m / (sqrt(largest) * s[7] + s[8]) * s[6];
}

__device__ __forceinline__ void adagrad_step(const C* x, C* r, const C* s) {
    const C g = s[0] != 0 ? x[1] + x[0] * s[0] : x[1];
    const C sum = x[2] + g * g;
    r[0] = x[0] - g / (sqrt(sum) + s[2]) * s[1];
    r[1] = sum;
}

__device__ __forceinline__ void rmsprop_step(const C* x, C* r, const C* s) {
    const C g = s[0] != 0 ? x[1] + x[0] * s[0] : x[1];
    const C square = x[2] * s[1] + g * g * s[2];
    C variance = square;
    r[1] = square;
#if CENTERED
    const C mean = x[3 + VELOCITY] * s[1] + g * s[2];
    r[2 + VELOCITY] = mean;
    variance = square - mean * mean;
#endif
    C v = g / (sqrt(variance) + s[3]);
#if VELOCITY
    v = x[3] * s[4] + v;
    r[2] = v;
#endif
    r[0] = x[0] - v * s[5];
}

__device__ __forceinline__ void lion_step(const C* x, C* r, const C* s) {
    const C c = x[2] * s[2] + x[1] * s[3];
    const C sign = c > 0 ? (C)1 : c < 0 ? (C)-1 : c;
    r[0] = x[0] * s[0] - sign * s[1];
    r[1] = x[2] * s[4] + x[1] * s[5];
}

__device__ __forceinline__ void adan_step(const C* x, C* r, const C* s) {
    const C change = x[1] - x[2];
    const C m = x[3] * s[2] + x[1] * s[3];
    const C difference = x[4] * s[4] + change * s[5];
    const C extrapolated = x[1] + change * s[4];
    const C v = x[5] * s[6] + extrapolated * extrapolated * s[7];
    const C direction = (m * s[8] + difference * s[9]) / (sqrt(v) * s[10] + s[11]);
    r[0] = (x[0] * s[0] - direction) / s[1];
    r[1] = m;
    r[2] = difference;
    r[3] = v;
}

struct Table {
    double numbers[NUMBERS];
    struct {
        int64 end, size;  // number of the block after the last one of the parameter, and elements
        T* arrays[INPUTS + OUTPUTS];
    } entries[TENSORS];
};

extern "C" __global__ void update(const Table table, int64 tensors) {
    int64 tensor = 0;
    for (int64 last = tensors - 1; last > tensor;) {
        const int64 middle = (tensor + last) / 2;
        if (table.entries[middle].end <= blockIdx.x) {
            tensor = middle + 1;
        } else {
            last = middle;
        }
    }
    const auto& own = table.entries[tensor];
    const int64 block = blockIdx.x - (tensor ? table.entries[tensor - 1].end : 0);
    const int64 first = block * (THREADS * EACH) + threadIdx.x, size = own.size;
    C numbers[NUMBERS];
    for (int k = 0; k < NUMBERS; k++) numbers[k] = (C)table.numbers[k];
    C x[EACH][INPUTS];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int64 i = first + k * THREADS;
#pragma unroll
        for (int input = 0; input < INPUTS; input++)
            x[k][input] = i < size ? (C)load(own.arrays[input][i]) : (C)0;
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int64 i = first + k * THREADS;
        if (i >= size) break;
        C r[OUTPUTS];
        STEP(x[k], r, numbers);
#pragma unroll
        for (int output = 0; output < OUTPUTS; output++)
            own.arrays[INPUTS + output][i] = convert<T>(r[output]);
    }
}
