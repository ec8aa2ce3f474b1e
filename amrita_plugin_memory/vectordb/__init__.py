"""The only room that knows Chroma: durable rows, and hot partitions searched in memory."""
