from emberlog.cli import main

main()
