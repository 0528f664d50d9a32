// One step of an optimizer for a list of parameters.
//
// STEP: the op. INPUTS, OUTPUTS: arrays of each parameter. NUMBERS: of the step. TENSORS: parameters
// of one launch at most. OpenCL has no arrays of buffers: ARGUMENTS declares each, and POINTERS lists
// them, the parameters of one operand or result side by side. A work group computes elements of one
// parameter, one an item.
//
// A step takes the elements x of the operands in the order of the op, without those of empty lists,
// and gives the elements r of the results. VELOCITY and CENTERED: whether RMSprop has these states.

typedef struct {
    long tensors, type;
    long groups[TENSORS];  // number of the first group of each parameter
    long sizes[TENSORS];
    long offsets[INPUTS][TENSORS];
    long numbers[NUMBERS];
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#endif

inline void sgd_step(const C* x, C* r, const C* s) {
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

inline void adam_step(const C* x, C* r, const C* s) {
    const C g = s[1] != 0 ? x[1] + x[0] * s[1] : x[1];
    const C m = x[2] * s[2] + g * s[3];
    const C v = x[3] * s[4] + g * g * s[5];
    r[1] = m;
    r[2] = v;
#if INPUTS > 4
    const C largest = maximum(x[4], v);
    r[3] = largest;
#else
    const C largest = v;
#endif
    r[0] = x[0] * s[0] - m / (sqrt(largest) * s[7] + s[8]) * s[6];
}

inline void adagrad_step(const C* x, C* r, const C* s) {
    const C g = s[0] != 0 ? x[1] + x[0] * s[0] : x[1];
    const C sum = x[2] + g * g;
    r[0] = x[0] - g / (sqrt(sum) + s[2]) * s[1];
    r[1] = sum;
}

inline void rmsprop_step(const C* x, C* r, const C* s) {
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

inline void lion_step(const C* x, C* r, const C* s) {
    const C c = x[2] * s[2] + x[1] * s[3];
    const C sign = c > 0 ? (C)1 : c < 0 ? (C)-1 : c;
    r[0] = x[0] * s[0] - sign * s[1];
    r[1] = x[2] * s[4] + x[1] * s[5];
}

inline void adan_step(const C* x, C* r, const C* s) {
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

KERNEL(GROUP_SIZE) void update(const Parameters parameters, ARGUMENTS) {
    GLOBAL void* const arrays[(INPUTS + OUTPUTS) * TENSORS] = {POINTERS};
#if TENSORS == 1
    const int tensor = 0;
#else
    int tensor = 0;
    while (tensor + 1 < parameters.tensors && parameters.groups[tensor + 1] <= GROUP) tensor++;
#endif
    const long i = (GROUP - parameters.groups[tensor]) * GROUP_SIZE + LANE;
    if (i >= parameters.sizes[tensor]) return;
    C numbers[NUMBERS], x[INPUTS], r[OUTPUTS];
    UNROLL for (int k = 0; k < NUMBERS; k++) numbers[k] = SCALAR((ulong)parameters.numbers[k]);
    UNROLL for (int k = 0; k < INPUTS; k++)
        x[k] = READ(arrays[k * TENSORS + tensor], parameters.offsets[k][tensor] + i, TYPE);
    STEP(x, r, numbers);
    UNROLL for (int k = 0; k < OUTPUTS; k++)
        WRITE(arrays[(INPUTS + k) * TENSORS + tensor], i, TYPE, r[k]);
}
