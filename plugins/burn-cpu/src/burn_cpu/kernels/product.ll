
; A batch of matrix products by BLAS, or a part of one. Words of the table:
;   0 A   1 B   2 C   3 4 how A and B are stored (111: rows, 112: columns)   5 6 7 M, N, K
;   8 9 10 distances of rows   11 products   12 13 14 bytes from one product to the next
;   15 rows or columns of C for each item   16 17 18 bytes of A, B, C for each of these
;   19 whether items are rows of C
define void @burn_product_$name(ptr %table, i64 %start, i64 %stop) {
entry:
  %a0 = load ptr, ptr %table
  $loads
  %several = icmp ugt i64 %w11, 1
  br i1 %several, label %batch, label %part
batch:
  %b = phi i64 [%start, %entry], [%b1, %one]
  %b1 = add i64 %b, 1
  %end = icmp uge i64 %b, %stop
  br i1 %end, label %return, label %one
one:
  %oa = mul i64 %b, %w12
  %ob = mul i64 %b, %w13
  %oc = mul i64 %b, %w14
  %pa = getelementptr i8, ptr %a0, i64 %oa
  %pb = getelementptr i8, ptr %b0, i64 %ob
  %pc = getelementptr i8, ptr %c0, i64 %oc
  call void @burn_$name(i32 101, i32 %ta, i32 %tb, $int %n5, $int %n6, $int %n7, $float 1.0, ptr %pa, $int %n8, ptr %pb, $int %n9, $float 0.0, ptr %pc, $int %n10)
  br label %batch
part:
  %is_rows = icmp ne i64 %w19, 0
  %all = select i1 %is_rows, i64 %w5, i64 %w6
  %first = mul i64 %start, %w15
  %behind0 = mul i64 %stop, %w15
  %behind = call i64 @llvm.smin.i64(i64 %behind0, i64 %all)
  %count = sub i64 %behind, %first
  %rows = select i1 %is_rows, i64 %count, i64 %w5
  %columns = select i1 %is_rows, i64 %w6, i64 %count
  %nrows = $narrow i64 %rows to $int
  %ncolumns = $narrow i64 %columns to $int
  %qa = mul i64 %first, %w16
  %qb = mul i64 %first, %w17
  %qc = mul i64 %first, %w18
  %ra = getelementptr i8, ptr %a0, i64 %qa
  %rb = getelementptr i8, ptr %b0, i64 %qb
  %rc = getelementptr i8, ptr %c0, i64 %qc
  call void @burn_$name(i32 101, i32 %ta, i32 %tb, $int %nrows, $int %ncolumns, $int %n7, $float 1.0, ptr %ra, $int %n8, ptr %rb, $int %n9, $float 0.0, ptr %rc, $int %n10)
  ret void
return:
  ret void
}
