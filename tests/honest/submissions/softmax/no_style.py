# honest: no style at all: one-letter names, commented-out code, a global in capitals, dead branches, star imports
# exercise: softmax
# runs: anywhere
# gates: passes
import triton, triton.language as tl, math
from math import *
#from triton.testing import do_bench
DEBUG = 0
# def softmax(x, out):
#     import torch
#     out[:] = torch.softmax(x, 1)      # <-- this worked but is not allowed
@triton.jit
def k(x,o,s,t,n,B:tl.constexpr):
  r=tl.program_id(0);c=tl.arange(0,B)
  v=tl.load(x+r*s+c,mask=c<n,other=float('-inf'))
  #v=tl.load(x+r*s+c)   # WRONG!!!
  v=v-tl.max(v,0)
  e=tl.exp(v); d=tl.sum(e,0)
  if False:
      tl.device_print("d",d)
  tl.store(o+r*t+c,e/d,mask=c<n)


def softmax(x,out):
  N=x.shape[1];B=1
  while B<N: B*=2
  w=1
  if B>512: w=2**int(log2(B/512))
  if w>32: w=32
  if DEBUG: print(N,B,w)
  k[(x.shape[0],)](x,out,x.stride()[0],out.stride()[0],N,B,num_warps=w)
  return None
  print('never')
