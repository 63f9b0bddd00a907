# honest: tabs, semicolons, backslashes, a line of 400 characters, no blank where one belongs
# exercise: vector_add
# runs: anywhere
# gates: passes
import triton;import triton.language as tl;from math import ceil
@triton.jit
def K(a,b,c,n,S:tl.constexpr):
	p=tl.program_id(0)   ;   o=p*S+tl.arange(0,S);m=o<n
	u=tl.load(a+o,mask=m) ;v=tl.load(b+o,mask=m)
	tl.store(c+o,u+\
			v,mask=m)   
def  vector_add ( x,y ,out ) :
	n=x . numel ( );S=1024;K[(int(ceil(n/S)),)](x,y,out,n,S) ; del n,S; # and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, and so it goes on, 



'the end'