package main

import (
	"strings"
	"testing"
)

func TestConvert(t *testing.T) {
	const head = "# full form\nsuite,table,instance,value,unit,mean,median,reference\n"
	var out strings.Builder
	err := convert(strings.NewReader(head+
		"he,compute,size=n=1000 k=2,sent,MB,5,5.25,CKKS-V\n"+
		"he,compute,size=n=1000 k=2,sent,MB,5,5.25,Mohassel et al.\n"+ // another reference of the same value
		"he,compute,size=n=1000 k=2,over it,,9,9.5,goal\n"+
		"he,\"operations, one core\",ISA=avx2; n=1,Lattigo,ns,7,6\n"), &out)
	const want = "Benchmark/he/compute/size=n=1000_k=2/sent 1 5.25 MB\n" +
		"Benchmark/he/operations,_one_core/ISA=avx2_n=1/Lattigo 1 6 ns\n"
	if err != nil || out.String() != want {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := convert(strings.NewReader("suite,table\n"), &out); err == nil || !strings.Contains(err.Error(), "instance") {
		t.Errorf("without columns: %v", err)
	}
}
