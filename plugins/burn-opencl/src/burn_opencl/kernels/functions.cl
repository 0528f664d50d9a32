// Functions of C that C has not, or has with another meaning.

#if IS_FLOATING
#if IS_DOUBLE
#define FULL(x) x
#else
#define FULL(x) JOIN(x, f)
#endif
#define ROOT_OF_HALF (C)FULL(0.7071067811865476)
#define remainder_of fmod
#if IS_CPU && !IS_DOUBLE
// Without branches and calls, so that loops become vectors. The polynomials for logarithm and tangent
// are those of Cephes (S. L. Moshier, 1989), that for erf is of M. Ebner's in Eigen (2016).
inline float logarithm(float x) {
    const float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
    const uint bits = BITS_OF_FLOAT(scaled);
    const float half_way = FLOAT_OF_BITS((bits & 0x007fffffu) | 0x3f000000u);
    const int low = half_way < 0.70710678f;
    const float e = (float)((int)(bits >> 23) - 126 - low - (x < 1.17549435e-38f ? 23 : 0));
    const float m = (low ? half_way + half_way : half_way) - 1.0f, z = m * m;
    float y = 7.0376836292e-2f * m - 1.1514610310e-1f;
    y = y * m + 1.1676998740e-1f;
    y = y * m - 1.2420140846e-1f;
    y = y * m + 1.4249322787e-1f;
    y = y * m - 1.6668057665e-1f;
    y = y * m + 2.0000714765e-1f;
    y = y * m - 2.4999993993e-1f;
    y = y * m + 3.3333331174e-1f;
    y = y * m * z - 2.12194440e-4f * e - 0.5f * z;
    const float result = (m + y) + 0.693359375f * e;
    const float edge = CHOSEN(x == 0.0f, -INFINITY, CHOSEN(x < 0.0f, NAN, x));
    return CHOSEN((x > 0.0f) & (x < INFINITY), result, edge);
}
inline float logarithm_above_1(float x) {
    const float u = 1.0f + x, result = logarithm(u), lost = (x - (u - 1.0f)) / u;
    const float more = result + CHOSEN((u > 0.0f) & (u < INFINITY), lost, 0.0f);
    return CHOSEN(x == 0.0f, x, more);
}
inline float exponential_less_1(float x) {
    float y = 2.4801587e-5f * x + 1.9841270e-4f;
    y = y * x + 1.3888889e-3f;
    y = y * x + 8.3333333e-3f;
    y = y * x + 4.1666667e-2f;
    y = y * x + 1.6666667e-1f;
    y = y * x + 0.5f;
    const float large = exp(x) - 1.0f;
    return copysign(CHOSEN(fabs(x) < 0.5f, y * x * x + x, large), x);
}
inline float tangent(float x) {
    const float z = x * x;
    float y = -5.70498872745e-3f * z + 2.06390887954e-2f;
    y = y * z - 5.37397155531e-2f;
    y = y * z + 1.33314422036e-1f;
    y = y * z - 3.33332819422e-1f;
    const float w = fabs(x), large = 1.0f - 2.0f / (exp(2.0f * w) + 1.0f);
    return copysign(CHOSEN(w < 0.625f, y * z * w + w, large), x);
}
inline float error_function(float x) {
    const float w = CHOSEN(fabs(x) > 4.0f, copysign(4.0f, x), x), z = w * w;
    float above = -2.72614225801306e-10f * z + 2.77068142495902e-08f;
    above = above * z - 2.10102402082508e-06f;
    above = above * z - 5.69250639462346e-05f;
    above = above * z - 7.34990630326855e-04f;
    above = above * z - 2.95459980854025e-03f;
    above = above * z - 1.60960333262415e-02f;
    float below = -1.45660718464996e-05f * z - 2.13374055278905e-04f;
    below = below * z - 1.68282697438203e-03f;
    below = below * z - 7.37332916720468e-03f;
    below = below * z - 1.42647390514189e-02f;
    return w * above / below;
}
#else
#define logarithm log
#define logarithm_above_1 log1p
#define exponential_less_1 expm1
#define error_function erf
// Of drivers' own some do not reach 1.
inline C tangent(C x) {
    const C decay = expm1((C)-2 * fabs(x));
    return copysign(-decay / ((C)2 + decay), x);
}
#endif
inline C floor_quotient(C x, C y) {
    if (y == (C)0) return x / y;
    const C rest = remainder_of(x, y);
    C quotient = (x - rest) / y;
    if (rest != (C)0 && (rest < (C)0) != (y < (C)0)) quotient -= (C)1;
    if (quotient == (C)0) return copysign((C)0, x / y);
    const C whole = floor(quotient);
    return quotient - whole > (C)0.5f ? whole + (C)1 : whole;
}
inline C floor_rest(C x, C y) {
    const C rest = remainder_of(x, y);
    if (rest == (C)0) return copysign((C)0, y);
    return (rest < (C)0) != (y < (C)0) ? rest + y : rest;
}
inline C sigmoid(C x) {
    const C decay = exp(-fabs(x));
    return (x < (C)0 ? decay : (C)1) / ((C)1 + decay);
}
inline C softplus(C x, C beta) {
    // NaN is not seen by fmax, but comes back with the exponential.
    return fmax(x, (C)0) + logarithm_above_1(exp(-fabs(x) * beta)) / beta;
}
// tanh(log(1 + exp(x))), which is 1 from far below 30 on.
inline C tangent_of_softplus(C x) {
    const C w = exp(fmin(x, (C)30)), n = w * (w + (C)2);
    return n / (n + (C)2);
}
inline C log_of_sum(C x, C y) {
    const C distance = x == y ? (C)0 : fabs(x - y);
    return larger(x, y) + logarithm_above_1(exp(-distance));
}
inline C gelu_inner(C x) {
    return (x * ((C)1 + (C)FULL(0.044715) * x * x)) * (C)FULL(0.7978845608028654);
}
inline C gelu_slope(C x) {
    const C area = (C)0.5f * ((C)1 + error_function(x * ROOT_OF_HALF));
    return area + x * (C)FULL(0.3989422804014327) * exp((C)-0.5f * x * x);
}
inline C gelu_tanh_slope(C x) {
    // (1 + tanh(y)) / 2 is sigmoid(2 y), which is exact where it is small.
    const C half_of = sigmoid((C)2 * gelu_inner(x));
    const C inner = x * ((C)1 + (C)FULL(0.134145) * x * x) * (C)FULL(0.3989422804014327);
    return half_of + inner * (C)4 * half_of * ((C)1 - half_of);
}
#else
inline C quotient(C x, C y) {
    if (y == 0) return 0;
    if (IS_SIGNED && y == (C)-1) return (C)(0 - (ulong)x);
    const C whole = x / y;
    return x % y != 0 && (x < 0) != (y < 0) ? whole - 1 : whole;
}
inline C truncated_rest(C x, C y) {
    return y == 0 || (IS_SIGNED && y == (C)-1) ? 0 : x % y;
}
inline C rest(C x, C y) {
    const C over = truncated_rest(x, y);
    return over != 0 && (over < 0) != (y < 0) ? over + y : over;
}
inline C integer_power(C base, C exponent) {
    if (IS_SIGNED && exponent < 0) {
        if (base == 1) return 1;
        if (base == (C)-1) return exponent & 1 ? (C)-1 : 1;
        return 0;
    }
    ulong result = 1, factor = (ulong)base;
    for (ulong left = (ulong)exponent; left; left >>= 1) {
        if (left & 1) result *= factor;
        factor *= factor;
    }
    return (C)result;
}
inline C shifted_left(C x, C count) { return (ulong)count >= 64 ? 0 : (C)((ulong)x << count); }
inline C shifted_right(C x, C count) {
    if ((ulong)count >= 64) return x < 0 ? (C)-1 : 0;
    return x >> count;
}
#endif
