# weir kernels: which kernel runs what, without a GPU and on the simulated driver, and what is said of questions that
# make no sense.
weir=$1 source=$2
. "$(dirname "$0")/expect.sh"
sim=$(dirname "$weir")/../lib/weir/sim
export XDG_CACHE_HOME="$scratch/cache"

expect 0 'softmax +f32 f16 bf16 +rows_held' "$weir" kernels list
expect 0 '"source": "gemm_sm90"' "$weir" kernels list --json
expect 0 'each element is read once' "$weir" kernels plan softmax --rows 4096 --width 8192
expect 0 '^weir_softmax_bf16_v8_t256_s3_' "$weir" kernels plan softmax --rows 4096 --width 32768
expect 0 'only the plain kernel' "$weir" kernels plan softmax --rows 4096 --width 8191
expect 0 'weir_gemm_bf16_mma_.* never measured' "$weir" kernels plan gemm --size 512,512,512 --device A10
expect 0 'only the plain kernel' "$weir" kernels plan gemm --size 512,512,512 --device T4
expect 0 '"name": "weir_gemm_f16_swiglu_nt_' "$weir" kernels plan gemm -s 512,512,512 -e swiglu --transposed b -t f16 --json
expect 0 'weir_rms_norm_f32_rsw_v' "$weir" kernels plan rms-norm -t f32 -r 10 -w 64 --with residual,sum,weight
expect 0 'weir_softmax_bf16_' env LD_LIBRARY_PATH="$sim" "$weir" kernels bench softmax -r 64 -w 64
expect 0 'measured' env LD_LIBRARY_PATH="$sim" "$weir" kernels tune gemm -s 64,64,64
expect 0 '"measured_ns": [0-9]' env LD_LIBRARY_PATH="$sim" "$weir" kernels tune layer-norm -r 64 -w 63 --json

expect 0 '"name": "weir_conv_bf16_bias_relu_nn_' "$weir" kernels plan conv -s 64,56,56,64,64,3,3 --padding 1 -e bias-relu --json
expect 0 '"flops": 1.47975e.10' "$weir" kernels plan conv -s 64,56,56,64,64,3,3 --padding 1 --json
expect 0 'weir_conv_f16_nt_' "$weir" kernels plan conv -t f16 -s 64,56,56,64,64,3,3 --padding 1 --pass input
expect 0 'only the plain kernel' "$weir" kernels plan conv -s 64,56,56,64,64,3,3 --padding 1 --stride 2,3 --pass input
expect 0 'weir_conv_bf16_direct' "$weir" kernels plan conv -s 1,56,56,64,64,3,3 --groups 64 --dilation 1,2
expect 0 'weir_conv_f32_filters' env LD_LIBRARY_PATH="$sim" "$weir" kernels tune conv -t f32 -s 2,8,8,64,64,3,3 --pass filters

# NVRTC compiles these. Without it the plain kernels run.
if python3 -c 'import ctypes; ctypes.CDLL("libnvrtc.so.13")' 2>/dev/null; then
	expect 0 'weir_conv_f16_residual_nt_' env LD_LIBRARY_PATH="$sim" "$weir" kernels bench conv -t f16 -s 2,8,8,64,64,3,3 --pass input -e residual
	expect 0 'weir_conv_bf16_tt_' env LD_LIBRARY_PATH="$sim" "$weir" kernels tune conv -s 2,8,8,64,64,3,3 --pass filters
	expect 0 'weir_gemm_bf16_batch_' env LD_LIBRARY_PATH="$sim" "$weir" kernels tune gemm -s 3,64,64,64
	expect 0 'weir_gemm_tf32_' env LD_LIBRARY_PATH="$sim" "$weir" kernels tune gemm -s 64,64,64 -t tf32
fi

expect 2 'needs --size N,H,W,C,K,R,S' "$weir" kernels plan conv -s 4,4,4
expect 2 'higher than the padded image' "$weir" kernels plan conv -s 1,2,2,8,8,3,3
expect 2 'multiples of groups' "$weir" kernels plan conv -s 1,2,2,8,8,1,1 --groups 3
expect 2 'stride is a number, or two' "$weir" kernels plan conv -s 1,2,2,8,8,1,1 --stride 1,x
expect 2 'pass is forward, input or filters' "$weir" kernels plan conv -s 1,2,2,8,8,1,1 --pass back
expect 2 'list, plan, tune or bench' "$weir" kernels describe
expect 2 'needs one operation' "$weir" kernels plan
expect 2 "no operation 'attention'" "$weir" kernels plan attention
expect 2 'needs --rows and --width' "$weir" kernels plan softmax --rows 4
expect 0 '"name": "weir_gemm_bf16_residual_batch_nn_' "$weir" kernels plan gemm -s 16,512,512,64 -e residual --json
expect 2 'from 0 to 2.30' "$weir" kernels plan gemm -s 16,2000000000,64,64
expect 2 'needs --size M,N,K' "$weir" kernels plan gemm --size 4,4
expect 0 '"name": "weir_gemm_s8_to_bf16_bias_silu_nn_' "$weir" kernels plan gemm -s 512,512,512 -e bias-silu -t s8 --json
expect 0 'only the plain kernel' "$weir" kernels plan gemm -s 512,512,512 -t e4m3 --transposed a
expect 0 'weir_gemm_s8_to_bf16_' env LD_LIBRARY_PATH="$sim" "$weir" kernels bench gemm -s 64,64,64 -t s8
expect 0 '"name": "weir_gemm_tf32_swiglu_nn_' "$weir" kernels plan gemm -s 512,512,512 -e swiglu -t tf32 --json
expect 2 '8 bits have no residual' "$weir" kernels plan gemm -s 512,512,512 -e swiglu -t s8
expect 2 'type is none' "$weir" kernels plan softmax -r 4 -w 4 -t s8
expect 2 "not 'f64'" "$weir" kernels plan gemm --size 4,4,4 --type f64
expect 2 'epilogue is none, bias' "$weir" kernels plan gemm --size 4,4,4 --epilogue tan
expect 2 'must be even' "$weir" kernels plan gemm --size 4,5,4 --epilogue swiglu
expect 2 'softmax takes no residual' "$weir" kernels plan softmax -r 4 -w 4 --with residual
expect 2 "no device 'Voodoo'" "$weir" kernels plan softmax -r 4 -w 4 --device Voodoo
expect 3 'CUDA_ERROR_NO_DEVICE' env WEIR_SIM=devices=0 LD_LIBRARY_PATH="$sim" "$weir" kernels bench softmax -r 4 -w 4
finish
