class Switchyard < Formula
  desc "SIMD kernels around the expert GEMMs of a Mixture-of-Experts layer"
  # address: set
  # homepage "@ADDRESS@"
  # address: end
  url "@ARCHIVES@/switchyard-@VERSION@.tar.gz"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on "highway"
  depends_on :linux
  depends_on "tbb"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja",
           "-DBUILD_SHARED_LIBS=ON", "-DSWITCHYARD_BUILD_TOOLS=ON", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    system bin/"swy", "verify", "--threads", "1"
  end
end
