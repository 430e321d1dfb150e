fn f(a: i32) {
  let b = a - --a;
  let c = - -a--a- --- -a---- ---2;
  let d = array(1f, .3--- --6)[a];
}
