"""Every operator of PyTorch's own database (OpInfo) through a compiler: dtypes, layouts, special values and other forms of a call.

Many calls share one compile. Results are cells `stage/backend/target/ops.<operator>:<dtype>` of an ordinary record.
"""
