"""Files that are published: an exported tree, a bucket, the dataset; and their verification."""
