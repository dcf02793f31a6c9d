from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.compilation import entry, helper
from partwise.losses import Workspace, workspace
from partwise.objective import Value, losses_at
from partwise.solvers.active import (
    ActiveSets, active_sets, dual_value, find, insert, output_of, remove, reserve, start_at_targets, weights_of,
)
from partwise.solvers.base import Progress, Solver, State, Task

class Block(NamedTuple):
    records: np.ndarray
    g: np.ndarray
    mass: np.ndarray
    before: np.ndarray
    products: np.ndarray
    ys: np.ndarray

def block(size, longest):
    return Block(np.zeros(size,np.int64),np.zeros(size),np.zeros(size),np.zeros(size),np.zeros((size,size)),np.zeros((size,longest),np.int32))

@helper
def smo(b, n, tau):
    for _ in range(20*n):
        low=high=-1
        for k in range(n):
            if low<0 or b.g[k]<b.g[low]: low=k
            if b.mass[k]>0.0 and (high<0 or b.g[k]>b.g[high]): high=k
        gap=b.g[high]-b.g[low]
        if gap<=tau: return
        curvature=b.products[low,low]-2.0*b.products[low,high]+b.products[high,high]
        step=b.mass[high]
        if gap<step*curvature:
            step=gap/curvature
            b.mass[high]-=step
        else:
            b.mass[high]=0.0
        b.mass[low]+=step
        for k in range(n):
            b.g[k]+=step*(b.products[k,low]-b.products[k,high])

@helper
def optimise(problem,i,w,sets,b,n,work,second,fraction,violation):
    T=kernels.length(problem,i)
    for k in range(n):
        y=output_of(sets,b.records[k],T)
        for j in range(T): b.ys[k,j]=y[j]
        b.before[k]=b.mass[k]
    t=kernels.target(problem,i)
    kernels.gram(problem,i,t,b.ys[:,:T],n,b.products,work.gradient,second)
    gain=0.0
    for k in range(n): gain+=b.mass[k]*b.g[k]
    linear=gain
    start=0.0
    for k in range(n):
        pass
    g0=b.products  # unused
    # gain = -1/2 sum alpha (g0+g1)
    gain=0.0
    for k in range(n): gain+=b.mass[k]*b.g[k]
    pre=gain
    # keep old gradient product: sum alpha g0 computed after
    old=np.empty(n)
    for k in range(n): old[k]=b.g[k]
    smo(b,n,fraction*violation)
    gain=0.0
    pivot=-1
    for k in range(n):
        a=b.mass[k]-b.before[k]
        gain-=0.5*a*(old[k]+b.g[k])
        if a!=0.0 and (pivot<0 or abs(a)>abs(b.mass[pivot]-b.before[pivot])): pivot=k
    for k in range(n):
        a=b.mass[k]-b.before[k]
        if a!=0.0:
            sets.weight[b.records[k]]=b.mass[k]
            if k!=pivot: kernels.difference(problem,i,b.ys[pivot,:T],b.ys[k,:T],a,w)
    return gain

@helper
def prune(sets,i,b,n):
    record,before=sets.head[i],-1
    while record>=0:
        following=sets.next[record]
        if sets.weight[record]==0.0: remove(sets,i,record,before)
        else: before=record
        record=following

@entry
def full_pass(problem,loss,order,C,w,sets,work,second,b,losses,gaps,skip,opts):
    calls=0; gain=0.0
    for i in order:
        if C[i]==0.0: continue
        if skip[i]>0:
            skip[i]-=1
            continue
        calls+=1
        theta=work.theta[:kernels.n_parts(problem,i)]
        kernels.score(problem,i,w,theta)
        reference=kernels.value_of(problem,i,theta,kernels.target(problem,i))
        if loss.gamma!=0.0: kernels.add_cost(problem,i,loss.gamma,theta)
        T=kernels.length(problem,i)
        y=work.y[:T]
        value=kernels.best(problem,i,theta,y)-reference
        record=sets.head[i]
        n=0; high=-np.inf; low=np.inf; mean=0.0
        while record>=0:
            g=reference-kernels.value_of(problem,i,theta,output_of(sets,record,T))
            b.records[n]=record; b.g[n]=g; b.mass[n]=sets.weight[record]
            mean-=g*b.mass[n]
            low=min(low,g)
            if b.mass[n]>0.0: high=max(high,g)
            n+=1
            record=sets.next[record]
        losses[i]=value
        gaps[i]=C[i]*value-mean
        if -value<low-1e-9:
            record=find(sets,i,y)
            if record<0:
                record=insert(sets,i,y,kernels.cost(problem,i,y))
                b.records[n]=record; b.g[n]=-value; b.mass[n]=0.0
                n+=1
                low=-value
        if high-low>opts[1]:
            gain+=optimise(problem,i,w,sets,b,n,work,second,opts[0],high-low)
            skip[i]=0
        prune(sets,i,b,n)
        if sets.size[i]==1 and value<=0.0+1e-12:
            skip[i]=opts[2]
    return calls,gain

@entry
def cheap_pass(problem,loss,order,w,sets,work,second,b,idle,opts):
    gain=0.0; seen=0
    for i in order:
        if sets.size[i]<2 or idle[i]: continue
        T=kernels.length(problem,i)
        t=kernels.target(problem,i)
        record=sets.head[i]
        n=0; high=-np.inf; low=np.inf
        while record>=0:
            g=kernels.margin(problem,i,w,t,output_of(sets,record,T),second)-loss.gamma*sets.cost[record]
            b.records[n]=record; b.g[n]=g; b.mass[n]=sets.weight[record]
            low=min(low,g)
            if b.mass[n]>0.0: high=max(high,g)
            n+=1
            record=sets.next[record]
        seen+=n
        if high-low>opts[1]:
            gain+=optimise(problem,i,w,sets,b,n,work,second,opts[0],high-low)
            prune(sets,i,b,n)
        if high-low<=opts[3]: idle[i]=True
    return seen,gain
