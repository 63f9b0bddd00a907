# Without a GPU:  docker build -t gpu-course . && docker run --rm -p 8888:8888 -v "$PWD/work:/course/work" gpu-course
# CUDA 13:        docker build -t gpu-course --build-arg EXTRA=gpu . && docker run --gpus all …
# The image needs no toolkit of its own: pip installs NVIDIA's compilers. Docker allows no sandbox in a container, so
# this is for your own code, not for grading others'.
ARG BASE=docker.io/library/python:3.12-slim
FROM ${BASE}
ARG EXTRA=
RUN apt-get update && apt-get install -y --no-install-recommends g++ make && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home learner && mkdir /course && chown learner /course
USER learner
WORKDIR /course
COPY --chown=learner . /course
RUN make .venv/.lab EXTRA=${EXTRA} YES=1
EXPOSE 8888
CMD [".venv/bin/grader", "lab", "--no-browser", "--port", "8888", "--", "--ip=0.0.0.0"]
