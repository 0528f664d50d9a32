// Functions of C that C has not, or has with another meaning.

#if IS_FLOATING
#if IS_DOUBLE
#define FULL(x) x
#else
#define FULL(x) JOIN(x, f)
#endif
#define remainder_of fmod
// Of drivers' own some do not reach 1.
inline C tangent(C x) {
    const C decay = expm1((C)-2 * fabs(x));
    return copysign(-decay / ((C)2 + decay), x);
}
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
inline C softplus(C x, C beta) { return larger(x, (C)0) + log1p(exp(-fabs(x) * beta)) / beta; }
inline C log_of_sum(C x, C y) {
    const C distance = x == y ? (C)0 : fabs(x - y);
    return larger(x, y) + log1p(exp(-distance));
}
inline C gelu_inner(C x) {
    return (x * ((C)1 + (C)FULL(0.044715) * x * x)) * (C)FULL(0.7978845608028654);
}
inline C gelu_slope(C x) {
    const C area = (C)0.5f * ((C)1 + erf(x * (C)FULL(0.7071067811865476)));
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
