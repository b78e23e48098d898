module snippets

go 1.26.0
